// Parts that pages share: panels, bars with their figures, tags, tables of spending.

import { element, facts, replace, table } from "./dom.js";
import { ago, duration, usd, volume, when } from "./format.js";

// A part of a page below its title.
export const panel = (id, title, ...children) =>
  element("section", { class: "panel", "aria-labelledby": id }, element("h2", { id }, title), children);
export function widePanel(...all) {
  const made = panel(...all);
  made.classList.add("wide");
  return made;
}
// The same, opened by its title. The address says which are open: "#open=candidates".
const fragment = () => new URLSearchParams(location.hash.slice(1));
const opened = new Set(fragment().get("open")?.split(" "));
export function keepOpen() {
  const kept = fragment();
  kept.delete("open");
  if (opened.size) kept.set("open", [...opened].join(" "));
  history.replaceState(null, "", `${location.pathname}${location.search}${kept.size ? `#${kept}` : ""}`);
}
export function folded(id, title, ...children) {
  const details = element("details", { open: opened.has(id), on: { toggle: () => {
    if (details.open === opened.has(id)) return;
    opened[details.open ? "add" : "delete"](id);
    keepOpen();
  } } }, element("summary", {}, element("h2", { id }, title)), children);
  return element("section", { class: "panel wide folded", "aria-labelledby": id }, details);
}

// A part that a phone shows folded.
const isPhone = matchMedia("(max-width: 40rem)").matches;
export const secondary = isPhone ? folded : panel;

// A bar of how much of something is used; the figures stand beside it, as text.
// kind: "good", "warn" or "bad" where the colour is to say what the text says, too.
export function bar(share, label, kind = "") {
  const part = Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0));
  const fill = element("span", { class: `fill ${kind}` });
  fill.style.width = `${100 * part}%`;
  return element("span", {
    class: "bar", role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100,
    "aria-valuenow": Math.round(100 * part),
  }, fill);
}

// What a mark of a chart means.
export const key = (kind, text) => element("span", {}, element("i", { class: `key ${kind}` }), text);

export const barred = (share, label, text, kind) => element("span", { class: "barred" }, bar(share, label, kind), element("span", { class: "figures" }, text));

export const small = (...said) => element("small", { class: "muted" }, said);

// A panel with a small title.
export const box = (title, ...said) => element("section", { class: "panel", "aria-label": title }, element("h3", {}, title), said);

// Parts of a page by name, each to be filled by itself.
export const partsOf = (...names) => Object.fromEntries(names.map((id) => [id, element("section", { class: `part ${id}`, id })]));

// A choice with its label; options: [value, text].
export const choice = (label, options, value, chosen) => element("label", {}, `${label} `, element("select", { on: { change: (event) => chosen(event.target.value) } },
  options.map(([each, text]) => element("option", { value: each, selected: each === value }, text))));

export function tag(text, kind = "muted") {
  return element("span", { class: `tag ${kind}` }, text);
}

// Dollars spent of a budget, as bar and figures; null where no budget was set.
export function spending(spent, budget, label) {
  if (!(budget > 0) || !Number.isFinite(budget)) return element("span", {}, `${usd(spent)}, no budget set`);
  const share = spent / budget;
  const kind = share >= 1 ? "bad" : share >= 0.8 ? "warn" : "";
  return barred(share, label, `${usd(spent)} of ${usd(budget)} (${Math.round(100 * share)} %)`, kind);
}

// How long ago something was; goes on counting while the page is open.
export function since(seconds, before = "", after = "") {
  if (seconds === null || seconds === undefined) return `${before}never${after}`;
  const made = element("time", { datetime: new Date(seconds * 1000).toISOString(), dataset: { at: seconds } }, ago(seconds));
  return [before, made, after];
}
setInterval(() => {
  for (const each of document.querySelectorAll("time[data-at]")) each.textContent = ago(Number(each.dataset.at));
}, 15000);

// How old what was measured is: amber once it is older than such links keep their level (the memory
// of its prior), red at twice that; in words too.
const YEAR_S = 365.25 * 86400;
export function age({ measured_at_s: at_s, source, prior }) {
  const memories = source === "measured" && prior ? (Date.now() / 1000 - at_s) / (prior.memory_years * YEAR_S) : 0;
  if (memories <= 1) return ago(at_s);
  return element("span", { class: memories > 2 ? "bad" : "warn" }, `${ago(at_s)}, too old to rely on`);
}

// Fills a part with what draw() returns when its data has changed. What a reader has opened stays open, and
// the focus stays where it was: a page that renews itself must not take things out of people's hands.
const drawn = new WeakMap();
export function redraw(part, data, draw) {
  const text = JSON.stringify(data);
  if (drawn.get(part) === text) return;
  const name = (each) => `${each.tagName} ${each.closest("[data-key]")?.dataset.key ?? ""} ${each.getAttribute("href") ?? each.textContent}`;
  const open = new Set([...part.querySelectorAll("details[open] > summary")].map(name));
  const focused = part.contains(document.activeElement) ? name(document.activeElement) : null;
  replace(part, draw());
  drawn.set(part, text);
  for (const summary of part.querySelectorAll("details > summary")) {
    if (open.has(name(summary))) summary.parentElement.open = true;
  }
  if (focused) [...part.querySelectorAll("a, button, summary, select, input, [tabindex]")].find((each) => name(each) === focused)?.focus();
}

// Remedies name commands in backquotes, as in a shell's help.
export function withCode(text) {
  return text.split("`").map((piece, at) => (at % 2 ? element("code", {}, piece) : piece));
}

// A table whose rows become cards on a phone.
export const cardTable = (name, ...more) => table(`cards ${name}`, ...more);

// A button below a list of which only a part is shown.
export const more = (text, show) => element("div", { class: "row" }, element("button", { type: "button", on: { click: show } }, text));

export const commands = (text) => element("pre", { tabindex: "0", role: "region", "aria-label": "Commands" }, element("code", {}, text));

// What the watcher of the fleet does and spends today.
export function watchFacts(watch) {
  const budget = watch.budget_used_up ? tag("used up until midnight UTC", "bad") : null;
  const pairs = [
    ["Role", watch.role === "prober" ? "prober: this service looks at the fleet"
      : watch.role === "standby" ? "standby: another process watches this store" : watch.role],
    ["Spent or set aside today", [spending(watch.spent_today_usd ?? 0, watch.daily_budget_usd, "Part of the daily budget that is spent or set aside"), " ", budget].filter(Boolean)],
  ];
  if (watch.sent_today_gb !== undefined) pairs.push(["Moved today", volume(watch.sent_today_gb)]);
  if (watch.looks_every_s) {
    pairs.push(["Looks", `every ${duration(watch.looks_every_s)}; an outage is noticed within ${duration(Math.ceil(watch.outages_noticed_within_s))}`]);
    const age = watch.last_look_age_s;
    // A time, not an age: looks go on while the page is not told of them.
    pairs.push(["Last look", age === null || age === undefined ? "none yet" : `${when(Date.now() / 1000 - age)}, when this was asked`]);
  }
  if (watch.campaign) pairs.push(["Measures now", `because ${watch.campaign.why}`]);
  if (watch.last_campaign) {
    const last = watch.last_campaign;
    const how = last.problem ? `failed: ${last.problem}` : `${usd(last.usd)}, ${last.failed} probes failed, ${last.left_out} left out`;
    pairs.push(["Last campaign", element("span", {}, since(last.ended_at_s), `, because ${last.why}: ${how}`)]);
  }
  pairs.push(["Webhook", webhook(watch.webhook)]);
  if (watch.problem) pairs.push(["Problem", element("span", { class: "bad" }, watch.problem)]);
  pairs.push(["Asked", element("span", {}, since(Date.now() / 1000))]);
  return facts(pairs);
}

function webhook(told) {
  if (!told) return "none is set";
  const text = `${told.delivered} delivered, ${told.failures} tries failed, ${told.given_up} given up`;
  return told.problem ? element("span", { class: "bad" }, `${text}; ${told.problem}`) : text;
}
