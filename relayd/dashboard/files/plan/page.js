// Direct, relayed or split: the request in the address, the answer below.

import { get, post } from "../shared/api.js";
import { commandLine, curl, python } from "./commands.js";
import { copyTabs } from "../shared/copying.js";
import { element, replace } from "../shared/dom.js";
import { linkPath, pairAddress } from "../shared/pairs.js";
import { baselineNote, places } from "../shared/places.js";
import { advice, bottleneck, verdict } from "./answer.js";
import { comparison } from "./compared.js";
import { linksOf, verdictText } from "./figures.js";
import { basis, candidates, paths } from "./tables.js";
import { loadFields } from "./fields.js";
import { planForm } from "./form.js";
import { frontier, limitsFor } from "./frontier.js";
import { fromAddress, question, toAddress } from "./request.js";
import { content, fail, restsOn, say, show } from "../shared/shell.js";

const answer = element("div", { id: "answer", "aria-live": "off" });
const spoken = element("p", { class: "hidden-text", role: "status", "aria-live": "polite" });
const addressOf = (request) => `plan?${toAddress(request)}`;
let waiting = new AbortController();

function commands(request) {
  return element(
    "section",
    { class: "panel", "aria-labelledby": "commands" },
    element("h2", { id: "commands" }, "The same elsewhere"),
    copyTabs("Copy as", [
      ["CLI command", commandLine(request)],
      ["curl", curl(request)],
      ["Python", python(request)],
    ]),
  );
}

const COMPARED = 6;

function drawn(plan, links, request, go) {
  const isPart = plan.alternatives.length + 1 >= Number(request.candidates ?? COMPARED);
  const all = isPart ? addressOf({ ...request, candidates: "1000" }) : null;
  const relayed = (relay) => addressOf({ ...request, relays: relay });
  return [
    baselineNote(plan.snapshot),
    verdict(plan),
    element(
      "p",
      { class: "row links" },
      element("a", { href: `map?${toAddress(request)}` }, "On the map"),
      element(
        "a",
        { href: pairAddress(plan.request.src, plan.request.dst) },
        "What is known of the pair",
      ),
    ),
    element(
      "div",
      { class: "answer-grid" },
      comparison(plan),
      element("div", { class: "stack" }, bottleneck(plan), advice(plan), commands(request)),
      paths(plan),
      candidates(plan, relayed, all),
      frontier(
        plan,
        (point) => go({ ...request, ...limitsFor(point, plan) }),
        (point) => addressOf({ ...request, ...limitsFor(point, plan) }),
      ),
      basis(plan, links),
    ),
  ];
}

// A link may have vanished with a newer snapshot: then there is one row less.
async function known(link, signal) {
  try {
    return (await get(linkPath(...link), {}, { signal })).link;
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

async function ask(request, form, go) {
  waiting.abort();
  waiting = new AbortController();
  const { signal } = waiting;
  form.clear();
  say("");
  spoken.textContent = "";
  answer.setAttribute("aria-busy", "true");
  try {
    const { isBody, content: asked } = question(request);
    const plan = isBody ? await post("v1/plans", asked, { signal }) : await get("v1/plans", asked, { signal });
    const links = await Promise.all(linksOf(plan).map((link) => known(link, signal)));
    restsOn(plan.snapshot);
    replace(answer, drawn(plan, links.filter(Boolean), request, go));
    spoken.textContent = `${verdictText(plan)}. ${plan.reason}`;
  } catch (error) {
    if (error.name === "AbortError") return;
    replace(answer);
    if (form.problem(error)) spoken.textContent = error.message;
    else if (["infeasible", "data"].includes(error.kind))
      replace(
        answer,
        element("section", { class: "problem no-plan" }, element("h2", {}, "No plan"), element("p", {}, error.message)),
        commands(request),
      );
    else fail(error);
  }
  answer.removeAttribute("aria-busy");
}

function hint({ regions }) {
  const [src, dst] = [regions[0], regions.find((region) => region.continent !== regions[0]?.continent)].map(
    (region) => region?.id,
  );
  return element(
    "p",
    {},
    "Say where from and where to: region ids, aliases such as us-east, or cities. ",
    src &&
      dst && [
        "For example, ",
        element("a", { href: addressOf({ src, dst, volume_gb: "500" }) }, `500 GB from ${src} to ${dst}`),
        ".",
      ],
  );
}

function start(known) {
  const made = planForm(known, go);
  replace(content, made.form, spoken, answer);

  function showAddress() {
    const request = fromAddress(location.search);
    made.fill(request);
    if (request.src && request.dst) return ask(request, made, go);
    waiting.abort();
    answer.removeAttribute("aria-busy");
    restsOn(known.snapshot);
    replace(answer, baselineNote(known.snapshot), hint(known));
    return undefined;
  }

  // The address is the request: it can be shared, and Back leads to the question before.
  function go(request) {
    const address = addressOf(request);
    if (`plan${location.search}` !== address) history.pushState(null, "", address);
    made.fill(request);
    return ask(request, made, go);
  }

  addEventListener("popstate", showAddress);
  return showAddress();
}

show(async () => {
  const [known] = await Promise.all([places(), loadFields()]);
  return start(known);
});
