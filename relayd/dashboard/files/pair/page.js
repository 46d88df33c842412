// The pair page: two regions, what is known between them in both directions, and why.

import { all, get } from "../shared/api.js";
import { element, replace } from "../shared/dom.js";
import { evidencePanel } from "./evidence.js";
import { factsPanel, lead, stateBanner } from "./facts.js";
import { historyPanels } from "./history.js";
import { lightPanel, relayPanel } from "./light.js";
import { linkPath, pairLink } from "../shared/pairs.js";
import { commands, small, withCode } from "../shared/parts.js";
import { nameList, places } from "../shared/places.js";
import { content, emptyState, fail, restsOn, say } from "../shared/shell.js";

const NEWS_EVERY_MS = 30e3;
const title = document.title;
const body = element("div", { id: "pair" });
const onward = element("nav", { class: "row onward", "aria-label": "This pair elsewhere" });
const names = element("div", { hidden: true });
const field = (name) => element("input", {
  name, list: "names", required: true, autocomplete: "off", spellcheck: "false", placeholder: "provider:region",
  on: { input: (event) => event.target.removeAttribute("aria-invalid") },
});
const fields = { src: field("src"), dst: field("dst") };
const typed = (name) => fields[name].value.trim();
let running = new AbortController();

const asked = () => Object.fromEntries(new URLSearchParams(location.search));

// What is chosen is in the address: it can be kept, shared and gone back to.
function keep(changes, { push = false } = {}) {
  const kept = Object.entries({ ...asked(), ...changes }).filter(([, value]) => value);
  history[push ? "pushState" : "replaceState"](null, "", `pair?${new URLSearchParams(kept)}`);
}

function choose(src, dst) {
  keep({ src, dst, since: "", until: "" }, { push: true });
  load();
}

const form = element("form", { class: "row pair-form", "aria-label": "Choose a pair", on: { submit: (event) => {
  event.preventDefault();
  choose(typed("src"), typed("dst"));
} } },
element("label", {}, "From", fields.src),
element("button", { type: "button", title: "Swap the two", "aria-label": "Swap the two regions", on: {
  click: () => choose(typed("dst"), typed("src")),
} }, "⇄"),
element("label", {}, "To", fields.dst), element("button", { class: "main" }, "Show"), names);

replace(content, element("div", { class: "pair-head" }, form, onward), body);

const known = places().then((found) => {
  replace(names, nameList("names", found));
  return found;
}).catch((error) => {
  fail(error);
  return { regions: [], aliases: {} };
});

// Without a pair: a few that were measured, to begin with.
async function begin(signal) {
  const measured = await get("v1/links", { source: "measured", limit: 8 }, { signal });
  restsOn(measured.snapshot);
  const begins = measured.links.map((link) => element("li", {}, linkInPlace(link.src, link.dst)));
  replace(body, emptyState("Choose two regions",
    element("p", {}, "Type a region, such as aws:us-east-1, or an alias, such as us-east, on both sides."),
    begins.length ? [element("p", {}, "Or begin with one that was measured:"), element("ul", {}, begins)] : howToMeasure()));
}

function linkInPlace(from, to) {
  const link = pairLink(from, to);
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(from, to);
  });
  return link;
}

function howToMeasure(from = "SRC", to = "DST") {
  return [
    element("p", {}, "Measure it, with hosts of your own in both regions, or import what a tool has measured:"),
    commands(`relayd probe --fleet fleet.toml --pairs '${from}>${to}' --budget 5
relayd import iperf3 out.json --src ${from} --dst ${to}
relayd import csv measured.csv`),
  ];
}

async function load() {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  const chosen = asked();
  for (const [name, input] of Object.entries(fields)) input.value = chosen[name] ?? "";
  document.title = chosen.src && chosen.dst ? `${chosen.src} → ${chosen.dst} - ${title}` : title;
  replace(onward);
  say("");
  try {
    if (!chosen.src || !chosen.dst) await begin(signal);
    else await show(chosen, signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    fields[error.field]?.setAttribute("aria-invalid", "true");
    replace(body);
    fail(error);
  } finally {
    if (!signal.aborted) body.removeAttribute("aria-busy");
  }
}

async function show(chosen, signal) {
  body.setAttribute("aria-busy", "true");
  if (!body.firstChild) replace(body, element("p", { class: "muted" }, "Asking the service …"));
  if (chosen.src === chosen.dst) return same();
  const there = await get(linkPath(chosen.src, chosen.dst), {}, { signal });
  const pair = { src: there.link.src, dst: there.link.dst };
  // The reverse direction may be unknown: the rest is shown all the same.
  const { links } = await get("v1/links", { src: pair.dst, dst: pair.src, limit: 1 }, { signal });
  const back = links.length ? await get(linkPath(pair.dst, pair.src), {}, { signal }) : null;
  const own = linkPath(pair.src, pair.dst);
  const [series, { events }, evidence, apart, named] = await Promise.all([
    get(`${own}/summary`, { metric: "rtt_ms", bins: 1 }, { signal }),
    all(`${own}/events`, "events", {}, { most: 1000, signal }),
    get(`${own}/evidence`, {}, { signal }),
    get("v1/quarantine", { ...pair, limit: 1 }, { signal }),
    known,
  ]);
  restsOn(there.snapshot);
  elsewhere(pair);
  watch(linkPath(pair.src, pair.dst), there, signal);
  const cities = [pair.src, pair.dst].map((id) => named.regions.find((each) => each.id === id)?.city).filter(Boolean);
  const measured = series.metrics.length > 0;
  const { panel, open } = evidencePanel(evidence, there.link);
  replace(body,
    element("h2", { class: "pair-name" }, `${pair.src} → ${pair.dst}`,
      cities.length === 2 && small(cities.join(" to "))),
    stateBanner(there, back),
    doubts(pair, apart),
    lead(there, back),
    measured ? null : emptyState("This direction was never measured",
      element("p", {}, there.link.rtt_ms.source === "baseline"
        ? "All figures are of the baseline: models from places, VM types and what large surveys saw."
        : "Its figures are inferred from other links, as said below."),
      howToMeasure(pair.src, pair.dst)),
    element("div", { class: "pair-grid" },
      factsPanel(there, back, open),
      relayPanel(pair, signal), lightPanel(there),
      measured && historyPanels(own, series.metrics, usual(there, evidence), events, { asked, keep }), panel));
}

// A link that is down or degraded has bounds of now; its history is held against the usual ones.
function usual({ link, state }, { evidence }) {
  if (!state) return link;
  return { ...link, ...Object.fromEntries(evidence.filter((each) => each.estimate && !each.region).map((each) => [each.quantity, each.estimate])) };
}

// Samples of this pair that do not count, and figures that some contradict.
function doubts(pair, { reasons, disputed }) {
  const number = reasons.reduce((sum, each) => sum + each.samples, 0);
  const told = [
    ...disputed.map(({ sentence }) => withCode(sentence)),
    ...(number ? [`${number} ${number === 1 ? "sample" : "samples"} of this pair can't be a measurement (${reasons.map(({ reason }) => reason).join(", ")}): nothing rests on ${number === 1 ? "it" : "them"}.`] : []),
  ];
  if (!told.length) return null;
  return element("div", { class: "problem pair-doubts", role: "note" }, told.map((text) => element("p", {}, text)),
    element("p", {}, element("a", { href: `quarantine?${new URLSearchParams(pair)}` }, "In quarantine and in dispute")));
}

function same() {
  replace(body, emptyState("Both ends are the same region",
    element("p", {}, "Choose two different regions: traffic within one is neither measured nor planned.")));
}

function elsewhere(pair) {
  const query = new URLSearchParams(pair);
  replace(onward,
    element("a", { href: `./?${query}` }, "Plan a transfer"),
    element("a", { href: `map?${query}` }, "On the map"),
    element("a", { href: "matrix" }, "All pairs"));
}

// A page that is left open says when it is no longer the newest word; what is read is not taken away.
function watch(own, shown, signal) {
  const said = (answer) => `${answer.snapshot.id} ${answer.state?.condition} ${answer.state?.since}`;
  const news = setInterval(async () => {
    if (document.hidden) return;
    const now = await get(own, {}, { signal }).catch(() => null);
    if (signal.aborted || now === null || said(now) === said(shown)) return;
    clearInterval(news);
    replace(document.getElementById("message"), element("p", { class: "news" }, "There are newer measurements. ",
      element("button", { type: "button", on: { click: load } }, "Show them")));
  }, NEWS_EVERY_MS);
  signal.addEventListener("abort", () => clearInterval(news));
}

window.addEventListener("popstate", load);
load();
