// The matrix page: one figure for every pair of regions. The address keeps what is shown.

import { COUNTRY, GROUPS, SORTS, byArea, members, providerTitle, rangeOf, selected } from "./order.js";
import { MatrixTable } from "./table.js";
import {
  UNKNOWN, address, baselineNote, button, choice, content, count, element, emptyState, figure, get, link as linked,
  number, pairAddress, places, providerOf, quantile, radios, replace, restsOn, show, small, sortable, toCheck, words,
} from "../shared/kit.js";
import { METRICS, scaleOf } from "../shared/metrics.js";

const DIGITS = 4; // more than a colour shows; exact figures come with the pair
const RENEW_MS = 60000;
const MOST_SHOWN = 120; // rows and columns of the table
const MOST_READ = 100; // regions; more are shown by area, opened in place
const PHONE_PX = 640; // a narrower window shows one row of the matrix, as a list
const ONLY = {
  relayed: "where the answer is not direct", unsampled: "never measured", unmeasured: "throughput not measured",
  old: "measured too long ago to rely on", disputed: "in dispute",
};
// What the address may say, the first of which stands unless it does; null for any text.
const CHOICES = {
  metric: ["aggregate", ...Object.keys(METRICS)], group: Object.keys(GROUPS), sort: Object.keys(SORTS),
  only: ["", ...Object.keys(ONLY)], connections: ["64", "1", "8"], measured: ["", "1"], empty: ["", "1"],
  areas: null, from: null, to: null, src: null, dst: null, rows: null, columns: null, one: null,
};
const usual = (name) => CHOICES[name]?.[0] ?? "";
const asked = new URLSearchParams(location.search);
const state = Object.fromEntries(Object.entries(CHOICES).map(([name, choices]) =>
  [name, asked.has(name) && (choices?.includes(asked.get(name)) ?? true) ? asked.get(name) : usual(name)]));

const answers = new Map(); // by what was asked
let facts = new Map(); // of regions
let table = null;
let built = "";
const parts = {
  empty: element("div"), controls: element("form", { class: "controls", "aria-label": "What the matrix shows" }),
  finding: element("p", { class: "finding" }), legend: element("div"), zoom: element("p", { class: "zoom row", role: "status" }),
  pointed: element("p", { class: "pointed-at", "aria-live": "off" }), grid: element("div", { class: "matrix-scroll" }),
  list: element("div"),
};

// ---- what is asked ----

const question = () => ({
  metric: state.metric, digits: DIGITS, measured_only: state.measured ? "true" : undefined,
  connections: state.metric === "relay-gain" ? state.connections : undefined,
});
async function answerTo(path, asking) {
  const name = address(path, asking);
  if (!answers.has(name)) answers.set(name, await get(path, asking));
  return answers.get(name);
}

const openAreas = () => new Set(state.areas.split(",").filter(Boolean));
// What a reader has narrowed down is shown by region, however many there are.
async function shownMatrix() {
  const matrix = await wantedMatrix();
  const isNarrow = ["from", "to", "src", "dst", "rows", "columns"].some((name) => state[name]);
  return matrix.regions.length > MOST_READ && !isNarrow ? byArea(matrix, facts, openAreas()) : matrix;
}

async function wantedMatrix() {
  const [matrix, chosen] = await Promise.all([answerTo("v1/matrix", question()),
    state.only && answerTo("v1/pairs", { kind: state.only })]);
  if (!chosen) return matrix;
  const { regions } = matrix;
  const targets = new Map(chosen.regions.map((region, at) => [region, new Set(chosen.targets[at].map((to) => chosen.regions[to]))]));
  const isWanted = (src, dst) => Boolean(targets.get(regions[src])?.has(regions[dst]));
  return { ...matrix, isWanted, values: matrix.values.map((row, src) => row.map((value, dst) => (isWanted(src, dst) ? value : null))) };
}

// ---- what is shown ----

// The newest choice wins, whatever the order in which answers come.
let [turn, drawnPx] = [0, 0];
async function draw(isRebuilt = true) {
  const mine = ++turn;
  parts.grid.setAttribute("aria-busy", "true");
  // A matrix is shown also if the service can't say what else is known.
  const asking = Promise.all([shownMatrix(), answerTo("v1/overview", {}).catch(() => null)]);
  const [matrix, about] = await asking.finally(() => mine === turn && parts.grid.removeAttribute("aria-busy"));
  if (mine !== turn) return;
  restsOn(matrix.snapshot);
  const scale = scaleOf(matrix.metric, matrix.values, matrix.areas);
  const picked = selected(matrix, facts, state, MOST_SHOWN);
  // A figure that no pair has is a sentence, not an empty matrix.
  const isEmpty = !picked.rows.length || !picked.columns.length;
  drawnPx = innerWidth;
  const isPhone = drawnPx < PHONE_PX;
  replace(parts.list, isPhone && !isEmpty && listOf(matrix, scale, picked));
  parts.grid.hidden = parts.pointed.hidden = isEmpty || isPhone;
  // Regions keep their places as the metric changes, unless their places follow from it.
  const shown = JSON.stringify([matrix.regions, picked.rows, picked.columns]);
  if (!isPhone && (isRebuilt || built !== shown)) {
    const hadFocus = parts.grid.contains(document.activeElement);
    table.build(matrix, picked.rows, picked.columns, state.group === "provider" ? (id) => id.slice(id.indexOf(":") + 1) : (id) => id);
    if (hadFocus) table.current?.cell?.focus({ preventScroll: true });
  }
  if (!isPhone) {
    built = shown;
    table.paint(matrix, scale);
    const [src, dst] = pointed.map((id) => matrix.regions.indexOf(id));
    if (src >= 0 && dst >= 0) showPair({ src, dst });
  }
  showZoom(picked, matrix, about?.knowledge.unsampled ?? 0);
  replace(parts.legend, !isEmpty && [legend(scale, matrix), state.metric === "fee" && toCheck(about?.knowledge.old_prices ?? [])]);
  const say = (found) => replace(parts.finding, found && [element("strong", {}, "What this shows: "), found]);
  say(sentence(matrix));
  replace(parts.empty, matrix.regions.length ? baselineNote(matrix.snapshot) : emptyState("No region has a throughput measurement",
    element("p", {}, button("Show all regions with their estimates", () => change({ measured: "" })))));
  document.body.dataset.shown = state.metric;
  // One flow against many: the sentence needs both, the first view only one of them; of many regions, another
  // matrix is too much for a sentence.
  const other = { "per-flow": "aggregate", aggregate: "per-flow" }[state.metric];
  if (!other || matrix.areas || matrix.isWanted || matrix.regions.length > MOST_SHOWN) return;
  const both = { [state.metric]: matrix, [other]: await answerTo("v1/matrix", { ...question(), metric: other }) };
  if (mine === turn) say(ofThroughput(both["per-flow"], both.aggregate) || sentence(matrix));
}

function showZoom({ rows, columns, all, empty, isTruncated }, { isWanted }, unsampled) {
  const isZoomed = state.rows || state.columns;
  const [high, wide] = [rows, columns].map(members);
  const left = [`${empty[0]} rows`, `${empty[1]} columns`].filter((_, at) => empty[at]).join(" and ");
  const wanted = isWanted && high.reduce((sum, src) => sum + wide.filter((dst) => isWanted(src, dst)).length, 0);
  const changes = (is, title, given) => is && button(title, () => change(given));
  replace(parts.zoom, [
    isTruncated && `Only the first ${MOST_SHOWN} rows and columns are shown: choose a provider, a country or a name to see others.`,
    isWanted && `${count(wanted)} ${wanted === 1 ? "pair is" : "pairs are"} shown, ${ONLY[state.only]}.`,
    isZoomed && `${high.length} × ${wide.length} of ${all.join(" × ")} pairs are shown.`,
    !isWanted && unsampled > 0 && `${count(unsampled)} ${unsampled === 1 ? "pair was" : "pairs were"} never measured.`,
    left && `${left} without ${isWanted ? "such a pair" : "a figure"} are left out.`,
  ].filter(Boolean).join(" "), changes(!isWanted && unsampled > 0, "Where nothing is known yet", { only: "unsampled", measured: "" }), changes(isZoomed, "Zoom out", { rows: "", columns: "" }),
  changes(isWanted, "Show all pairs", { only: "" }), changes(left, "Show them", { empty: "1" }),
  changes(state.empty, "Leave out rows and columns without a figure", { empty: "" }));
}

// The pair that is pointed at, and where more of it is: one line, so that nothing jumps.
let pointed = []; // the names of both ends
function showPair({ src, dst }) {
  const { regions, values, sources, metric } = table.matrix;
  const { title, shown, none = "unknown" } = METRICS[metric];
  const [from, to] = pointed = [regions[src], regions[dst]];
  const [city, other] = [from, to].map((id) => facts.get(id)?.city ?? id);
  const value = values[src][dst];
  const told = value === null ? none : [shown(value), sources?.[src][dst]].filter(Boolean).join(", ");
  replace(parts.pointed, src === dst ? [element("strong", {}, from), ` ${city}: the region itself`]
    : [element("strong", {}, `${from} → ${to}`), ` ${city} to ${other}. ${title}: ${told}. `,
      [from, to].some((name) => table.matrix.areas?.has(name)) ? "The median of its pairs: a click opens the area." : linked(pairAddress(from, to), "Ask")]);
}

// On a phone: from one region to the others.
function listOf({ regions, values, sources, metric, isWanted }, { classOf }, { rows, columns }) {
  const { title, shown, isLess, none = UNKNOWN } = METRICS[metric];
  const choices = members(rows).map((at) => regions[at]);
  const from = choices.includes(state.one) ? state.one : choices[0];
  const src = regions.indexOf(from);
  const found = members(columns).filter((dst) => dst !== src && (isWanted ? isWanted(src, dst) : values[src][dst] !== null))
    .map((dst) => ({ to: regions[dst], value: values[src][dst], source: sources?.[src][dst] ?? "" }));
  return [choice("From", choices.map((id) => [id, id]), from, (one) => change({ one })), sortable(`${title} from ${from}`, [
    words("To", "to", (to) => linked(pairAddress(from, to), to)),
    number(title, "value", (value) => (value === null ? [swatch("unknown"), ` ${none}`] : [swatch(classOf(value)), ` ${shown(value)}`])),
    words("Source", "source"),
  ], found, { order: 1, descending: !isLess })];
}

// What the colours and the hatching mean, and how often each occurs.
const SOURCES = { measured: "measured", inferred: "inferred", baseline: "baseline" };
const swatch = (kind) => element("span", { class: `swatch ${kind}`, "aria-hidden": "true" });

function legend(scale, { metric, values, sources, isWanted = () => true }) {
  const { best, meaning, unit, none = "unknown" } = METRICS[metric];
  const counts = { measured: 0, inferred: 0, baseline: 0, unknown: 0 };
  values.forEach((row, src) => row.forEach((value, dst) => {
    if (src !== dst && isWanted(src, dst)) counts[value === null ? "unknown" : (sources?.[src][dst] ?? "measured")] += 1;
  }));
  const isMixed = Object.values(counts).filter(Boolean).length > 1;
  const kind = (name, text) => isMixed && counts[name] > 0 && element("li", {}, swatch(name === "unknown" ? name : `l5 ${name}`), text,
    small(` ${count(counts[name])}`));
  return element("section", { class: "legend", "aria-label": "Legend" },
    element("p", {}, element("strong", {}, meaning), unit ? `, ${unit}` : "", element("span", { class: "muted" }, `: the stronger, the ${best}`)),
    element("ol", { class: "scale", title: scale.isEven ? "Classes are equally wide." : "Each class has about as many pairs." }, scale.classes.map(([name, text]) => element("li", {}, swatch(name), text))),
    element("ul", { class: "kinds" }, sources && Object.entries(SOURCES).map((each) => kind(...each)),
      kind("unknown", none)));
}

// ---- summed up in a sentence ----

const LEAST_PAIRS = 6; // for percentiles to mean something
const MOST_EVEN = 1.5; // a spread that people would call even
const LEAST_GAIN = 1.2; // what a relay must bring to be worth a second look
const share = (part, whole) => `${Math.round((100 * part) / whole)} %`;
const gains = (values) => values.filter((value) => value >= LEAST_GAIN).length;
const spread = (values) => quantile(values, 0.9) / quantile(values, 0.1);

// [{ src, dst, values }] for each ordered pair of providers; values rise.
function blocksOf({ regions, values }) {
  const providers = regions.map(providerOf);
  const known = values.flatMap((row, at) => row.map((value, to) => ({ src: providers[at], dst: providers[to], value })))
    .filter(({ value }) => value !== null);
  return [...Map.groupBy(known, ({ src, dst }) => `${src} ${dst}`).values()].map((found) =>
    ({ ...found[0], values: Float64Array.from(found.map(({ value }) => value)).sort() }));
}

function sentence(matrix) {
  const blocks = blocksOf(matrix);
  const whole = Float64Array.from(blocks.flatMap((block) => [...block.values])).sort();
  const { shown, title } = METRICS[matrix.metric];
  const { isWanted } = matrix;
  if (isWanted && !matrix.values.some((row, src) => row.some((_, dst) => isWanted(src, dst)))) {
    return `There is no such pair among ${state.measured ? "the measured" : "all"} regions: ${ONLY[state.only]}.`;
  }
  const unsampled = isWanted && state.only === "unsampled" ? "Nothing was measured of these pairs" : "";
  if (!whole.length) return unsampled ? `${unsampled}.` : `Nothing is known yet: no pair has a sample of ${matrix.metric === "loss" ? "packet loss" : "its own"}.`;
  if (matrix.metric === "relay-gain") {
    const most = blocks.map(({ src, dst, values }) => [gains(values) / values.length, src, dst])
      .sort(([a], [b]) => b - a).slice(0, 2)
      .map(([part, ...ends]) => `${share(part, 1)} of those from ${ends.map(providerTitle).join(" to ")}`);
    return `A relay brings ${LEAST_GAIN}× or more for ${share(gains(whole), whole.length)} of all pairs: ${most.join(" and ")}.`;
  }
  const [low, middle, high] = [0.1, 0.5, 0.9].map((part) => shown(quantile(whole, part)));
  return `${unsampled && `${unsampled}: figures are estimates. `}${title} is ${middle} in the median of ${count(whole.length)} pairs; four in five lie between ${low} and ${high}.`;
}

function ofThroughput(...both) {
  const [flows, rates] = both.map((matrix) => new Map(blocksOf(matrix)
    .filter((block) => block.src === block.dst && block.values.length >= LEAST_PAIRS)
    .map((block) => [block.src, spread(block.values)])));
  const providers = [...flows.keys()].filter((name) => rates.has(name));
  const isEven = (name) => rates.get(name) <= MOST_EVEN && flows.get(name) > 2 * rates.get(name);
  const even = providers.filter(isEven).map(providerTitle);
  const parts = providers.map((name) => [name, name].map(providerTitle).join(" to ")
    + `: per-flow varies ${figure(flows.get(name))}×, aggregate ${figure(rates.get(name))}×`);
  return parts.length && `${parts.join("; ")} (90th over 10th percentile of pairs).${even.length
    ? ` Within ${even.join(" and ")}, one flow is slow over long distances, and many flows together reach the VM's cap.` : ""}`;
}

// ---- what is chosen ----

// A choice of a part of the order ends what was zoomed to.
const ORDER = ["only", "group", "sort", "from", "to", "src", "dst"];

function change(changes, isRebuilt = true) {
  Object.assign(state, changes);
  const said = Object.entries(state).filter(([name, value]) => value !== usual(name));
  history.replaceState(null, "", address(location.pathname, Object.fromEntries(said)));
  const fields = parts.controls.elements;
  fields.only.value = state.only;
  fields.measured.checked = Boolean(state.measured);
  fields.connections.parentElement.hidden = state.metric !== "relay-gain";
  return show(() => draw(isRebuilt));
}

function controls(known) {
  const all = (name) => [...new Set(known.map((region) => region[name]).filter(Boolean))].sort();
  const ends = [["", "all"], ...all("provider").map((name) => [name, providerTitle(name)]),
    ...all("country").map((name) => [`${COUNTRY}${name}`, `in ${name}`])];
  for (const end of ["from", "to"]) if (!ends.some(([value]) => value === state[end])) state[end] = "";
  const select = (name, title, choices) => choice(title, choices, state[name], () => {}, name);
  const text = (name, title) => element("input", { type: "search", name, value: state[name], "aria-label": title, placeholder: "region, city" });
  replace(parts.controls,
    radios("Figure", "metric", Object.keys(METRICS).map((value) => [value, METRICS[value].title]), state.metric),
    element("div", { class: "row" }, select("only", "Pairs", [["", "all"], ...Object.entries(ONLY)]),
      select("group", "Group by", Object.entries(GROUPS)), select("sort", "Sort by", Object.entries(SORTS)),
      select("from", "From", ends), text("src", "From, by name"), select("to", "To", ends), text("dst", "To, by name"),
      select("connections", "Connections", ["1", "8", "64"].map((value) => [value, value])),
      element("label", {}, element("input", { type: "checkbox", name: "measured", checked: Boolean(state.measured) }), "Measured regions only")));
  parts.controls.elements.connections.parentElement.hidden = state.metric !== "relay-gain";
  parts.controls.addEventListener("submit", (event) => event.preventDefault());
  parts.controls.addEventListener("change", ({ target: { name, type, checked, value } }) => {
    const chosen = type === "checkbox" ? (checked ? "1" : "") : value;
    change({ [name]: chosen, ...(ORDER.includes(name) && { rows: "", columns: "" }) }, name !== "metric" && name !== "connections");
  });
}

async function renew() {
  if (document.hidden || !table) return;
  const before = (await answerTo("v1/matrix", question())).snapshot.id;
  const matrix = await get("v1/matrix", question());
  if (matrix.snapshot.id === before && state.metric !== "age") return;
  answers.clear();
  answers.set(address("v1/matrix", question()), matrix);
  await draw(false);
}

await show(async () => {
  const [{ regions }] = await Promise.all([places(), answerTo("v1/matrix", question())]);
  facts = new Map(regions.map((region) => [region.id, region]));
  replace(content, parts.empty, parts.controls, parts.finding, parts.legend, parts.zoom, parts.grid, parts.pointed, parts.list);
  replace(parts.pointed, "Point at a cell, or reach the matrix by the tab key and move with the arrow keys; Enter opens the pair.");
  controls(regions);
  table = new MatrixTable(parts.grid, {
    zoom: (both) => {
      const [rows, columns] = both.map((part) => rangeOf(table.matrix.regions, part));
      change({ rows, columns });
    },
    out: () => (state.rows || state.columns) && change({ rows: "", columns: "" }),
    point: showPair,
    toggle: (area) => {
      const opened = openAreas();
      if (!opened.delete(area)) opened.add(area);
      change({ areas: [...opened].join(",") });
    },
    open: ({ src, dst }, newTab) => {
      const closed = [src, dst].map((at) => table.matrix.regions[at]).filter((name) => table.matrix.areas?.has(name));
      if (closed.length) return void change({ areas: [...openAreas().union(new Set(closed))].join(",") });
      const address = pairAddress(table.matrix.regions[src], table.matrix.regions[dst]);
      if (newTab) window.open(address, "_blank", "noopener");
      else location.assign(address);
    },
  });
  await draw();
});
let resized = 0;
addEventListener("resize", () => {
  clearTimeout(resized);
  // Not for what comes and goes at the top of a phone's browser.
  resized = setTimeout(() => table && innerWidth !== drawnPx && show(() => draw()), 200);
});
setInterval(() => show(renew), RENEW_MS);
