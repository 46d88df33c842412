// All that a page is made of, in one place to import it from; and parts that pages share: panels, bands, bars,
// tags, links to pairs, names of places, prices, decisions, texts to copy.

import { get, isSignedOut } from "./api.js";
import { button, drawn, element, facts, isPhone, link, muted, replace, small } from "./dom.js";
import { ago, count, duration, range, usd, volume, when } from "./format.js";
import { keepFresh, show } from "./shell.js";

export * from "./api.js";
export * from "./dom.js";
export * from "./format.js";
export * from "./shell.js";

// ---- panels ----

const titled = (kind) => (id, title, ...children) =>
  element("section", { class: kind, "aria-labelledby": id }, element("h2", { id }, title), children);
export const [panel, widePanel] = [titled("panel"), titled("panel wide")];

// What is chosen within a view stands behind the #: "#open=candidates&range=7d".
export const fragment = () => new URLSearchParams(location.hash.slice(1));
export function keep(changes) {
  const kept = new URLSearchParams(Object.entries({ ...Object.fromEntries(fragment()), ...changes }).filter(([, value]) => value));
  history.replaceState(history.state, "", `${location.pathname}${location.search}${kept.size ? `#${kept}` : ""}`);
}

// A panel that is opened by its title; the address says which are open. A child that is a function makes
// its elements when they are first seen.
let opened = new Set();
const readOpen = () => { opened = new Set(fragment().get("open")?.split(" ")); };
readOpen();
addEventListener("popstate", readOpen);
export const keepOpen = () => keep({ open: [...opened].join(" ") });
export function folded(id, title, ...children) {
  const made = (all) => all.map((child) => (typeof child === "function" ? child() : child));
  const body = element("div");
  const details = element("details", { open: opened.has(id), on: { toggle: () => {
    if (details.open && !body.firstChild) replace(body, made(children));
    if (details.open === opened.has(id)) return;
    opened[details.open ? "add" : "delete"](id);
    keepOpen();
  } } }, element("summary", {}, element("h2", { id }, title)), body);
  if (!children.some((child) => typeof child === "function")) replace(body, children);
  return element("section", { class: "panel wide folded", "aria-labelledby": id }, details);
}

export const secondary = isPhone ? folded : panel;

export const box = (title, ...said) =>
  element("section", { class: "panel", "aria-label": title }, element("h3", {}, title), said);

export const partsOf = (...names) => Object.fromEntries(names.map((id) =>
  [id, element("section", { class: `part ${id}`, id })]));

// Fills a page whose parts renew themselves: refresh() asks for everything again, heard() hears events, as
// keepFresh has it. Returns what renews it.
export function livePage(place, all, refresh, heard) {
  const line = element("p", { class: "live", role: "status" });
  replace(place, line, all);
  return keepFresh(line, () => show(refresh), heard);
}

// Fills a part with what draw() returns when its data has changed. What a reader has opened stays open, and
// the focus stays where it was: a page that renews itself must not take things out of people's hands.
const drawnOf = new WeakMap();
export function redraw(part, data, draw) {
  const text = JSON.stringify(data);
  if (drawnOf.get(part) === text) return;
  const name = (each) => [each.tagName, each.closest("[data-key]")?.dataset.key,
    each.getAttribute("href") ?? each.textContent].join(" ");
  const open = new Set([...part.querySelectorAll("details[open] > summary")].map(name));
  const focused = part.contains(document.activeElement) ? name(document.activeElement) : null;
  replace(part, draw());
  drawnOf.set(part, text);
  for (const summary of part.querySelectorAll("details > summary")) {
    if (open.has(name(summary))) summary.parentElement.open = true;
  }
  if (focused === null) return;
  const places = part.querySelectorAll("a, button, summary, select, input, [tabindex]");
  [...places].find((each) => name(each) === focused)?.focus();
}

// ---- words, buttons and choices ----

export const tag = (text, kind = "muted") => element("span", { class: `tag ${kind}` }, text);

// States of links, transfers, hosts and knowledge are of one kind on all pages, with one colour each; why: words that
// say more.
const STATES = { good: "good", bad: "bad", unknown: "muted", stale: "warn" };
export const colourOf = (state) => STATES[state] ?? state;
export const stateTag = (state, ...why) => [tag(state, colourOf(state)), " ", why.filter(Boolean).join(", ")];

export const more = (text, show) => element("div", { class: "row" }, button(text, show));

// A choice with its label; options: [value, text].
export const choice = (label, options, value, chosen, name = null) => element("label", {}, `${label} `, element("select", {
  name, on: { change: (event) => chosen(event.target.value) },
}, options.map(([each, text]) => element("option", { value: each, selected: each === value }, text))));

// The same as buttons of which one is pressed; options: [value, text].
export const radios = (label, name, options, value, chosen = () => {}) => element("fieldset", { class: "choice" },
  element("legend", { class: "hidden-text" }, label), options.map(([each, text]) => element("label", {}, element("input", {
    type: "radio", name, value: each, checked: each === value, on: { change: () => chosen(each) },
  }), element("span", {}, text))));

// Figures that are looked at first: [title, address or none, a state, "warn" or "", value, note].
export const tiles = (all) => element("ul", { class: "health" }, all.map(([title, href, kind, value, note]) =>
  element("li", {}, element(href ? "a" : "div", { class: `tile ${colourOf(kind)}`, href }, element("span", { class: "muted" }, title),
    element("strong", { class: colourOf(kind) }, value), note && small(note)))));

export const commands = (text) =>
  element("pre", { tabindex: "0", role: "region", "aria-label": "Commands" }, element("code", {}, text));

// Remedies name commands in backquotes, as in a shell's help.
export const withCode = (text) =>
  text.split("`").map((piece, at) => (at % 2 ? element("code", {}, piece) : piece));

// ---- figures drawn ----

// A bar of how much of something is used; the figures stand beside it, as text.
// kind: "good", "warn" or "bad" where the colour is to say what the text says, too.
export function barred(share, label, text, kind = "") {
  const part = Math.round(100 * Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0)));
  const fill = element("span", { class: `fill ${kind}` });
  fill.style.width = `${part}%`;
  return element("span", { class: "barred" }, element("span", {
    class: "bar", role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100,
    "aria-valuenow": part,
  }, fill), element("span", { class: "figures" }, text));
}

export function spending(spent, budget, label) {
  if (!(budget > 0) || !Number.isFinite(budget)) return element("span", {}, `${usd(spent)}, no budget set`);
  const share = spent / budget;
  const kind = share >= 1 ? "bad" : share >= 0.8 ? "warn" : "";
  return barred(share, label, `${usd(spent)} of ${usd(budget)} (${Math.round(100 * share)} %)`, kind);
}

// An estimate: from low to high as a band, expected as a mark, on a scale from zero to `most`.
const BAND_PX = 16;
export function band({ low, expected, high }, most, label, { width = 130 } = {}) {
  const at = (value) => (most > 0 ? Math.max(0, Math.min(1, value / most)) * (width - 2) + 1 : 1);
  const long = Math.max(1.5, at(high ?? most) - at(low));
  return drawn("svg", {
    class: "band", viewBox: `0 0 ${width} ${BAND_PX}`, width, height: BAND_PX, role: "img", "aria-label": label,
  },
  drawn("rect", { class: "track", x: 0, y: 5, width, height: 6, rx: 1 }),
  drawn("rect", { class: "range", x: at(low), y: 3, width: long, height: 10, rx: 1 }),
  drawn("rect", { class: "expected", x: at(expected) - 1, y: 1, width: 2.5, height: 14 }));
}

// The bounds of an estimate in words, above its band; what: the figure's name.
export function bounded(estimate, what, shown, { most = estimate.high, unit = "", ...more } = {}) {
  const words = range(estimate.low, estimate.high, shown);
  return [`${words}${unit}`, band(estimate, most, `${what}, ${words}${unit}`, more)];
}

export const key = (kind, text) => element("span", {}, element("i", { class: `key ${kind}` }), text);

// ---- ages ----

// How long ago something was; goes on counting while the page is open.
export function since(seconds, before = "", after = "") {
  if (seconds === null || seconds === undefined) return `${before}never${after}`;
  const datetime = new Date(seconds * 1000).toISOString();
  return [before, element("time", { datetime, dataset: { at: seconds } }, ago(seconds)), after];
}
setInterval(() => {
  for (const each of document.querySelectorAll("time[data-at]")) each.textContent = ago(Number(each.dataset.at));
}, 15000);

// How old what was measured is: stale once it is older than such links keep their level (the memory of its prior).
const YEAR_S = 365.25 * 86400;
export function age({ measured_at_s: at_s, source, prior }) {
  const memories = source === "measured" && prior ? (Date.now() / 1000 - at_s) / (prior.memory_years * YEAR_S) : 0;
  return memories <= 1 ? ago(at_s) : element("span", { class: colourOf("stale") }, `${ago(at_s)}, too old to rely on`);
}

// ---- the watcher ----

// The tile of all watched links; watch: the watcher, whose last look is that of what is stale.
export function linksTile({ leg_states: states, links_health: health }, watch, href) {
  const known = ["down", "degraded"].map((condition) => [condition, states.filter((state) => state.condition === condition)])
    .filter(([, found]) => found.length);
  const [condition, [worst]] = known[0] ?? ["", []];
  return ["Links", href, health, known.map(([name, found]) => `${count(found.length)} ${name}`).join(", ") || (health === "unknown" ? health : "none down"),
    worst ? [`${worst.src} → ${worst.dst} ${condition === "down" ? "went down" : "degraded"} `, since(Date.parse(worst.since) / 1000), "."]
      : health === "good" ? "Plans avoid links that are down."
        : health === "stale" ? since(Date.now() / 1000 - watch.last_look_age_s, "As of the last look, ", ": the next is overdue.")
          : withCode(watch ? "No look has ended yet." : "Not watched: no failure would be seen. Start the service with a fleet and a daily budget, or `relayd measure watch`.")];
}

export function watchFacts(watch) {
  const { role, looks_every_s: every, last_look_age_s: age, campaign, last_campaign: last } = watch;
  const budget = watch.budget_used_up && tag("used up until midnight UTC", "bad");
  return facts([
    ["Role", { prober: "prober: this service looks at the fleet", standby: "standby: another process watches this store" }[role] ?? role],
    ["Spent or set aside today", [spending(watch.spent_today_usd ?? 0, watch.daily_budget_usd,
      "Part of the daily budget that is spent or set aside"), " ", budget]],
    watch.sent_today_gb !== undefined && ["Moved today", volume(watch.sent_today_gb)],
    every && ["Looks", `every ${duration(every)}; an outage is noticed within ${duration(Math.ceil(watch.outages_noticed_within_s))}`],
    // A time, not an age: looks go on while the page is not told of them.
    every && ["Last look", (age ?? null) === null ? "none yet" : `${when(Date.now() / 1000 - age)}, when this was asked`],
    campaign && ["Measures now", `because ${campaign.why}`],
    last && ["Last campaign", element("span", {}, since(last.ended_at_s), `, because ${last.why}: `, last.problem
      ? `failed: ${last.problem}` : `${usd(last.usd)}, ${last.failed} probes failed, ${last.left_out} left out`)],
    ["Webhook", webhook(watch.webhook)],
    watch.problem && ["Problem", element("span", { class: "bad" }, watch.problem)],
    ["Asked", element("span", {}, since(Date.now() / 1000))],
  ]);
}

const webhook = (told) => (!told ? "none is set" : element("span", { class: told.problem && "bad" },
  `${told.delivered} delivered, ${told.failures} tries failed, ${told.given_up} given up`, told.problem && `; ${told.problem}`));

// ---- pairs, places, prices, scopes ----

// What is known of a directed pair of regions is a part of what Ask answers.
export const askAddress = (asked, open = "") => `./?${new URLSearchParams(asked)}${open && `#open=${open}`}`;
export const pairAddress = (src, dst) => askAddress({ src, dst }, "pair");
// A line breaks between the names of regions before it breaks one of them.
const end = (region) => element("span", { class: "end" }, region);
export const ends = (src, dst) => [end(src), " → ", end(dst)];
export const pairLink = (src, dst) => link(pairAddress(src, dst), ends(src, dst));
export const linkPath = (src, dst) => `v1/links/${encodeURIComponent(src)}/${encodeURIComponent(dst)}`;

// Asked once a page, again where it failed.
export function once(ask) {
  let kept = null;
  return () => kept ??= ask().catch((error) => {
    kept = null;
    throw error;
  });
}

export const places = once(() => get("v1/regions"));

// A datalist of what a region may be called; words come first ("any", "none").
export function nameList(id, { regions, aliases }, words = []) {
  const first = (members) => `${members.slice(0, 3).join(", ")}${members.length > 3 ? ", ..." : ""}`;
  const option = (value, label) => element("option", { value, label });
  return element("datalist", { id }, words.map((word) => option(word)),
    Object.entries(aliases).map(([alias, members]) => option(alias, `alias: ${first(members)}`)),
    regions.map(({ id: region, city, country }) => option(region, [city, country].filter(Boolean).join(", "))));
}

// Said wherever figures come from models because nothing was measured.
export const baselineNote = ({ source }) => source === "baseline" && element("p", { class: "modelled" }, element("span", { class: "warn",
  "aria-hidden": "true" }, "● "), "Nothing is measured yet: figures are models, with wide bounds. ", link("./", "Three ways to begin"), ".");

// Prices that are old or unconfirmed are named, with the command that renews them, beside prices and in Settings.
const overview = once(() => get("v1/overview"));
export const oldPrices = async () => (await overview()).knowledge.old_prices;
export const toCheck = (prices) => prices.length > 0 && element("details", { class: "to-check" },
  element("summary", {}, "Prices to check"), prices.map((text) => element("p", {}, withCode(text))));
document.querySelector(".gear").addEventListener("toggle", async ({ target }) => isSignedOut()
  || target.querySelector("ul").append(...(await oldPrices().catch(() => [])).map((text) => element("li", {}, withCode(text)))), { once: true });

// What the reader's token does not allow is not offered, and the scope is named.
const ownToken = once(() => get("v1/token"));
export const may = async (scope) => (await ownToken()).scopes.includes(scope);
export const needsScope = (what, scope) =>
  muted(`${what} needs a token with the scope `, element("code", {}, scope), ".");

// ---- decisions, and texts to copy ----

// What changes something is done by a second button, below what it will do.

// title: of the button that shows what it does; verb: of the one that does it; what: text or
// elements, or a function that asks for them. act(done) does it, and may say how it ended by
// done(text or elements).
export function asksTwice(title, verb, what, act) {
  const place = element("div", { class: "asks" });
  const ask = guarded(title, async () => {
    const told = typeof what === "function" ? await what() : element("p", {}, what);
    const go = guarded(verb, () => act((...said) => replace(place, element("p", { role: "status" }, said))), { class: "main" });
    const back = button("Leave it", () => {
      replace(place, ask);
      ask.focus();
    });
    const box = element("div", { class: "consent", role: "group", "aria-label": title, tabindex: "-1" },
      told, element("div", { class: "row" }, go, back));
    replace(place, box);
    box.focus(); // not the button: pressing Enter twice is to change nothing
  });
  return replace(place, ask);
}

// A button that takes one click at a time.
function guarded(title, work, attributes) {
  const made = button(title, async () => {
    made.disabled = true;
    await show(work);
    made.disabled = false;
  }, attributes);
  return made;
}

// Says in a live region whether it was copied. Without the clipboard (plain HTTP from another
// machine), the text is selected and copied the old way.
async function copy(text, source) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(source);
    return document.execCommand("copy");
  }
}

// A text, the button that copies it, and how that went.
export function copyable(text, title, label) {
  const code = element("code", {}, text);
  const said = element("span", { class: "copied good", role: "status", "aria-live": "polite" });
  return [element("pre", { tabindex: "0", "aria-label": label }, code), button(title, async () => {
    said.textContent = await copy(text, code) ? "copied" : "selected: press Ctrl+C";
  }), " ", said];
}

// texts: [[title, text]], of which one is shown; label: what they are.
export function copyChoice(label, texts) {
  const place = element("div", { class: "copy" });
  const put = (chosen) => replace(place, texts.filter(([title]) => title === chosen)
    .map(([title, text]) => copyable(text, `Copy ${title}`, `${title}: text`)));
  const titles = texts.map(([title]) => [title, title]);
  put(titles[0][0]);
  return element("div", {}, element("div", { class: "row" }, choice(label, titles, titles[0][0], put)), place);
}
