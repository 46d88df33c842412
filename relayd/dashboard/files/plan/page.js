// A page for every question: the request in the address, the answer below. What an answer looks like
// is a module by the name of its question, answers/NAME.js; all else is the same for all.

import { get, post } from "../shared/api.js";
import { beginnings } from "./begin.js";
import { besideTable, earlierSnapshots, whatIfs } from "./beside.js";
import { commandLine, curl, python } from "./commands.js";
import { copyTabs } from "../shared/copying.js";
import { element, replace } from "../shared/dom.js";
import { downloads } from "./downloads.js";
import { showChips } from "./chips.js";
import { loadFields, QUESTION, QUESTIONS, worded } from "./fields.js";
import { planForm, titled } from "./form.js";
import { showGains } from "./gains.js";
import { keepOpen } from "../shared/parts.js";
import { baselineNote, places } from "../shared/places.js";
import { besideOf, fromAddress, question, toAddress } from "./request.js";
import { content, fail, restsOn, say, show } from "../shared/shell.js";
import { waiting } from "../shared/waiting.js";

const answer = element("div", { id: "answer", "aria-live": "off" });
const spoken = element("p", { class: "hidden-text", role: "status", "aria-live": "polite" });
const addressOf = (request, beside) => `./?${toAddress(request, beside)}`;
const name = new URLSearchParams(location.search).get("question") || "transfer";
const wait = element("div");
const begun = waiting(wait);
let asking = new AbortController();
const LONGEST_LINKED = 1_000_000; // browsers follow no address of 2 MB, and an answer grows when it is encoded

// Where to go on from an answer: to the question that takes it as a document.
const GOES_ON = {
  transfer: ["replan", "plan", "Re-plan while it is under way"], shuffle: ["replan", "plan", "Re-plan while it is under way"],
  broadcast: ["replan", "plan", "Re-plan while it is under way"], schedule: ["schedule", "existing", "Go on with this schedule"],
};

function menu() {
  return element("nav", { class: "questions", "aria-label": "Questions" }, element("ul", {}, QUESTIONS.map((each) => element("li", {},
    element("a", { href: each.name === "transfer" ? "./" : `./?question=${each.name}`, title: each.summary, "aria-current": each === QUESTION ? "page" : null },
      titled(each.name))))));
}

function commands(request, plan) {
  const more = plan && GOES_ON[QUESTION.name];
  const written = more && JSON.stringify(plan);
  return element("section", { class: "panel", "aria-labelledby": "commands" }, element("h2", { id: "commands" }, "The same elsewhere"),
    copyTabs("Copy as", [["CLI command", commandLine(request)], ["curl", curl(request)], ["Python", python(request)]]),
    plan && downloads(plan, QUESTION.name),
    more && element("p", {}, written.length < LONGEST_LINKED
      ? element("a", { href: `./?question=${more[0]}#${new URLSearchParams({ [more[1]]: written })}` }, more[2])
      : `${more[2]}: this answer is too long for a link. Download its JSON and paste it there.`));
}

async function answerTo(request, signal) {
  const { isBody, content: body } = question(request);
  const path = QUESTION.path.slice(1);
  return isBody ? post(path, body, { signal }) : get(path, body, { signal });
}

async function ask(request, beside, form, go) {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  form.clear();
  say("");
  spoken.textContent = "";
  answer.classList.remove("stale");
  answer.setAttribute("aria-busy", "true");
  const ended = begun(() => {
    asking.abort();
    replace(answer);
    answer.removeAttribute("aria-busy");
    say("Cancelled: the question is still in the form.");
    form.form.querySelector("button.main").focus();
  });
  try {
    const [module, plan, other, earlier] = await Promise.all([
      import(`../answers/${QUESTION.name}.js`), answerTo(request, signal),
      beside && answerTo(beside.request, signal).catch((error) => (error.name === "AbortError" ? Promise.reject(error) : error)),
      earlierSnapshots(),
    ]);
    const { head, body } = await module.shown(plan, {
      request, addressOf, signal, go: (changed) => go(changed), commands: commands(request, plan), mapAddress: `map?${toAddress(request)}`,
    });
    restsOn(plan.snapshot);
    replace(answer, baselineNote(plan.snapshot), head, whatIfs(request, plan, addressOf, earlier),
      beside && besideTable({ request, plan }, { ...beside, plan: other }, addressOf), element("div", { class: "answer-grid" }, body));
    spoken.textContent = `${module.spoken(plan)}. ${plan.reason}`;
    showChips(request, plan, undefined, { addressOf, signal });
  } catch (error) {
    if (error.name === "AbortError") return;
    replace(answer);
    showChips(request, {}, error, { addressOf, signal });
    if (form.problem(error)) spoken.textContent = worded(error);
    else if (["infeasible", "data"].includes(error.kind))
      replace(answer, element("section", { class: "problem no-plan" }, element("h2", {}, "No plan"), element("p", {}, worded(error))), commands(request));
    else fail(error);
  } finally {
    ended();
    if (!signal.aborted) answer.removeAttribute("aria-busy");
  }
}

// Before a question: three ways to begin where nothing is measured, else where relays pay.
async function opening({ snapshot }) {
  const part = element("section", { class: "gains" });
  answer.append(part);
  if (snapshot.source === "baseline") replace(part, beginnings(await get("v1/fleet")));
  await showGains(part.appendChild(element("div")));
}

const isComplete = (request) => Object.keys(request).length > 0 && QUESTION.fields.every((field) => !field.required || request[field.name]);

function hint({ regions }) {
  if (QUESTION.name !== "transfer") {
    return element("p", {}, `${QUESTION.summary}. `, element("a", { href: addressOf(exampleRequest()) }, "An example"), ".");
  }
  const [src, dst] = [regions[0], regions.find((region) => region.continent !== regions[0]?.continent)].map((region) => region?.id);
  return element("p", {}, "Say where from and where to: region ids, aliases such as us-east, or cities. ",
    src && dst && ["For example, ", element("a", { href: addressOf({ src, dst, volume_gb: "500" }) }, `500 GB from ${src} to ${dst}`), "."]);
}

// The worked example of a question's specification, as the form writes it.
function exampleRequest() {
  const text = (value) => {
    if (typeof value !== "object") return String(value);
    if (Array.isArray(value) && value.every((each) => typeof each !== "object")) return value.join(", ");
    return JSON.stringify(value, null, 1);
  };
  const places = (value) => Object.entries(value).map(([place, each]) => `${place}=${each}`).join(", ");
  const kinds = new Map(QUESTION.fields.map((field) => [field.name, field.kind]));
  return Object.fromEntries(Object.entries(QUESTION.example).map(([key, value]) => [key, kinds.get(key) === "by_place" ? places(value) : text(value)]));
}

function start(known) {
  const made = planForm(known, go);
  replace(content, menu(), made.form, spoken, wait, answer);
  if (QUESTION.name !== "transfer") document.title = `${titled(QUESTION.name)} - ${document.title}`;

  function showAddress() {
    answer.classList.remove("stale");
    const request = fromAddress(location.search, location.hash);
    made.fill(request);
    // It says by itself that it waits.
    if (isComplete(request)) return void ask(request, besideOf(location.hash), made, go);
    asking.abort();
    answer.removeAttribute("aria-busy");
    restsOn(known.snapshot);
    replace(answer, baselineNote(known.snapshot), hint(known));
    return QUESTION.name === "transfer" ? opening(known) : undefined;
  }

  // The address is the request: it can be shared, and Back leads to the question before. What it is
  // compared with stays.
  function go(request) {
    const beside = besideOf(location.hash);
    const [before, address] = [fromAddress(location.search, location.hash), request].map((each) => addressOf(each, beside?.address));
    if (before !== address) history.pushState(null, "", address);
    keepOpen();
    made.fill(request);
    return ask(request, beside, made, go);
  }

  // What is in the form is not what was answered: until it is asked, the answer is dimmed.
  made.form.addEventListener("input", () => answer.classList.add("stale"));
  addEventListener("popstate", showAddress);
  if (!location.search && matchMedia("(pointer: fine)").matches) made.form.elements.namedItem("src")?.focus();
  return showAddress();
}

show(async () => {
  const [known] = await Promise.all([places(), loadFields(name)]);
  return start(known);
});
