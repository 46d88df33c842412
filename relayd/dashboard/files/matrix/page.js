// The matrix page: one figure for every pair of regions. The address keeps what is shown.

import { get } from "../shared/api.js";
import { element, replace } from "../shared/dom.js";
import { count } from "../shared/format.js";
import { ASKED_METRICS, METRICS, scaleOf } from "../shared/metrics.js";
import { pairAddress } from "../shared/pairs.js";
import { baselineNote } from "../shared/places.js";
import { oldPrices } from "../shared/prices.js";
import { content, emptyState, restsOn, show } from "../shared/shell.js";
import { blocksTable, sentence } from "./blocks.js";
import { comparedSentence, ranked } from "./compare.js";
import { detailsOf } from "./details.js";
import { legend } from "./legend.js";
import { COUNTRY, GROUPS, members, MOST_SIMILAR, providerTitle, rangeOf, selected, SORTS } from "./order.js";
import { MatrixTable } from "./table.js";

const DIGITS = 4; // more than a colour shows; exact figures come with the pair
const RENEW_MS = 60000;
const MOST_SHOWN = 120; // rows and columns of the table
const MOST_COLUMNS_WITH_DETAILS = 80; // columns that leave room for details beside them
const LEAST_BESIDE_PX = 1150; // of the window
const ONLY = {
  relayed: "where the answer is not direct", unmeasured: "not measured", old: "measured too long ago to rely on", disputed: "in dispute",
};
// What the address may say, the first of which stands unless it does; null for any text.
const CHOICES = {
  metric: ["aggregate", ...ASKED_METRICS], group: Object.keys(GROUPS), sort: Object.keys(SORTS), only: ["", ...Object.keys(ONLY)],
  connections: ["64", "1", "8"], with: ["", ...ASKED_METRICS], measured: ["", "1"], empty: ["", "1"],
  from: null, to: null, src: null, dst: null, rows: null, columns: null,
};
const usual = (name) => CHOICES[name]?.[0] ?? "";
const asked = new URLSearchParams(location.search);
const state = Object.fromEntries(Object.entries(CHOICES).map(([name, choices]) => {
  const value = asked.get(name);
  return [name, value !== null && (choices?.includes(value) ?? true) ? value : usual(name)];
}));

const answers = new Map(); // by what was asked
let places = new Map();
let details = null;
let table = null;
let built = "";
const parts = {
  empty: element("div"), controls: element("form", { class: "controls", "aria-label": "What the matrix shows" }),
  finding: element("p", { class: "finding" }), legend: element("div"), zoom: element("p", { class: "zoom row", role: "status" }),
  grid: element("div", { class: "matrix-scroll" }), blocks: element("div"),
};

// ---- what is asked ----

const questionOf = (metric) => ({
  metric, digits: DIGITS, measured_only: state.measured ? "true" : undefined,
  connections: metric === "relay-gain" ? state.connections : undefined,
});
const keyOf = (path, question) => JSON.stringify([path, question]);

async function answerTo(path, question, renew = false) {
  const key = keyOf(path, question);
  if (renew || !answers.has(key)) answers.set(key, await get(path, question));
  return answers.get(key);
}
const matrixOf = (metric, renew) => answerTo("v1/matrix", questionOf(metric), renew);
const atHand = (metric) => answers.get(keyOf("v1/matrix", questionOf(metric)));

// What is shown: a figure, or how it compares with another one; of all pairs, or of those that are chosen.
async function shownMatrix() {
  const { metric, with: other, only } = state;
  const [own, another, chosen] = await Promise.all([matrixOf(metric), other && other !== metric ? matrixOf(other) : null,
    only ? answerTo("v1/pairs", { kind: only }) : null]);
  const matrix = another ? ranked(own, another) : own;
  if (!chosen) return matrix;
  const at = new Map(chosen.regions.map((region, place) => [region, place]));
  const [places_, targets] = [matrix.regions.map((region) => at.get(region)), chosen.targets.map((each) => new Set(each))];
  const isWanted = (src, dst) => Boolean(targets[places_[src]]?.has(places_[dst]));
  return { ...matrix, isWanted, values: matrix.values.map((row, src) => row.map((value, dst) => (isWanted(src, dst) ? value : null))) };
}

// ---- what is shown ----

// The newest choice wins, whatever the order in which answers come.
let turn = 0;
async function draw(isRebuilt = true) {
  turn += 1;
  const mine = turn;
  parts.grid.setAttribute("aria-busy", "true");
  let matrix, outdated;
  try {
    // A matrix of prices is shown also where nobody can say how old they are.
    [matrix, outdated] = await Promise.all([shownMatrix(), state.metric === "fee" ? oldPrices().catch(() => null) : null]);
  } finally {
    if (mine === turn) parts.grid.removeAttribute("aria-busy");
  }
  if (mine !== turn) return;
  restsOn(matrix.snapshot);
  const { metric } = matrix;
  const scale = scaleOf(metric, matrix.values);
  const picked = selected(matrix, scale, places, state, MOST_SHOWN);
  // A figure that no pair has is a sentence, not an empty matrix. What is hidden has no width, and the
  // table is as wide as there is room.
  const isEmpty = !picked.rows.length || !picked.columns.length;
  parts.layout.hidden = isEmpty;
  parts.layout.classList.toggle("below", innerWidth < LEAST_BESIDE_PX || members(picked.columns).length > MOST_COLUMNS_WITH_DETAILS);
  // Regions keep their places as the metric changes, unless their places follow from it.
  const shown = JSON.stringify([matrix.regions, picked.rows, picked.columns]);
  if (isRebuilt || built !== shown) {
    const hadFocus = parts.grid.contains(document.activeElement);
    table.build(matrix, picked.rows, picked.columns, state.group === "provider" ? (id) => id.slice(id.indexOf(":") + 1) : (id) => id);
    if (hadFocus) table.current?.cell?.focus({ preventScroll: true });
  }
  built = shown;
  table.paint(matrix, scale);
  showZoom(picked, matrix);
  replace(parts.legend, !isEmpty && [outdated, legend(scale, matrix)]);
  replace(parts.blocks, metric === state.metric && !isEmpty && blocksTable(matrix));
  showFinding(matrix);
  replace(parts.empty, matrix.regions.length ? baselineNote(matrix.snapshot) : emptyState("No region has a throughput measurement",
    element("p", {}, button("Show all regions with their estimates", { measured: "" }))));
  details.again(matrix);
  document.body.dataset.shown = state.metric;
  // One flow beside many: the sentence needs both, the first view only one of them; of many regions, another
  // matrix is too much for a sentence.
  const other = { "per-flow": "aggregate", aggregate: "per-flow" }[metric];
  if (!other || matrix.regions.length > MOST_SHOWN) return;
  await matrixOf(other);
  if (mine === turn) showFinding(matrix);
}

const button = (text, changes) => element("button", { type: "button", on: { click: () => change(changes) } }, text);

// What is not shown, and how to see it.
function showZoom({ rows, columns, all, empty, isTruncated }, { isWanted }) {
  const isZoomed = state.rows || state.columns;
  const [high, wide] = [rows, columns].map(members);
  const left = [`${empty[0]} rows`, `${empty[1]} columns`].filter((_, at) => empty[at]).join(" and ");
  const wanted = isWanted && high.reduce((sum, src) => sum + wide.filter((dst) => isWanted(src, dst)).length, 0);
  replace(parts.zoom, [
    isTruncated && `Only the first ${MOST_SHOWN} rows and columns are shown: choose a provider, a country or a name to see others.`,
    isWanted && `${count(wanted)} ${wanted === 1 ? "pair is" : "pairs are"} shown, ${ONLY[state.only]}.`,
    isZoomed && `${high.length} × ${wide.length} of ${all.join(" × ")} pairs are shown.`,
    left && `${left} without ${isWanted ? "such a pair" : "a figure"} are left out.`,
  ].filter(Boolean).join(" "), isZoomed && button("Zoom out", { rows: "", columns: "" }),
  isWanted && button("Show all pairs", { only: "" }), left && button("Show them", { empty: "1" }),
  state.empty && button("Leave out rows and columns without a figure", { empty: "" }));
}

function showFinding(matrix) {
  const found = matrix.metric !== state.metric ? comparedSentence(matrix)
    : sentence(state.metric, Object.fromEntries(ASKED_METRICS.map((metric) => [metric, atHand(metric)])));
  replace(parts.finding, found && [element("strong", {}, "What this shows: "), found]);
}

// ---- what is chosen ----

function change(changes, isRebuilt = true) {
  Object.assign(state, changes);
  const query = new URLSearchParams(Object.entries(state).filter(([name, value]) => value !== usual(name)));
  history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
  const fields = parts.controls.elements;
  for (const name of ["only", "connections"]) fields[name].value = state[name];
  fields.measured.checked = Boolean(state.measured);
  fields.connections.parentElement.hidden = state.metric !== "relay-gain";
  return show(() => draw(isRebuilt));
}

function controls(known) {
  const titles = Object.fromEntries(ASKED_METRICS.map((name) => [name, METRICS[name].title]));
  const all = (name) => [...new Set(known.map((region) => region[name]).filter(Boolean))].sort();
  const ends = [["", "all"], ...all("provider").map((name) => [name, providerTitle(name)]), ...all("country").map((name) => [`${COUNTRY}${name}`, `in ${name}`])];
  for (const end of ["from", "to"]) if (!ends.some(([value]) => value === state[end])) state[end] = "";
  const select = (name, title, choices) => element("label", {}, title, element("select", { name }, choices.map(([value, text]) =>
    element("option", { value, selected: state[name] === value }, text))));
  const text = (name, title) => element("input", { type: "search", name, value: state[name], "aria-label": title, placeholder: "region, city" });
  const sorts = Object.entries(SORTS).filter(([value]) => value !== "similar" || known.length <= MOST_SIMILAR);
  replace(parts.controls,
    element("fieldset", { class: "choice" }, element("legend", { class: "hidden-text" }, "Figure"), Object.entries(titles).map(([value, title]) =>
      element("label", {}, element("input", { type: "radio", name: "metric", value, checked: state.metric === value }), element("span", {}, title)))),
    element("div", { class: "row" },
      select("only", "Pairs", [["", "all"], ...Object.entries(ONLY)]), select("group", "Group by", Object.entries(GROUPS)), select("sort", "Sort by", sorts),
      select("from", "From", ends), text("src", "From, by name"), select("to", "To", ends), text("dst", "To, by name"),
      select("with", "Compare with", [["", "nothing"], ...Object.entries(titles)]), select("connections", "Connections", ["1", "8", "64"].map((number) => [number, number])),
      element("label", {}, element("input", { type: "checkbox", name: "measured", checked: Boolean(state.measured) }), "Measured only")));
  parts.controls.elements.connections.parentElement.hidden = state.metric !== "relay-gain";
  parts.controls.addEventListener("submit", (event) => event.preventDefault());
  parts.controls.addEventListener("change", ({ target: { name, type, checked, value } }) => {
    // What was zoomed to is a part of an order.
    const isOrder = ["only", "group", "sort", "from", "to", "src", "dst"].includes(name);
    change({ [name]: type === "checkbox" ? (checked ? "1" : "") : value, ...(isOrder && { rows: "", columns: "" }) },
      name !== "metric" && name !== "connections");
  });
}

async function renew() {
  if (document.hidden || !table) return;
  const before = atHand(state.metric)?.snapshot.id;
  const matrix = await matrixOf(state.metric, true);
  if (matrix.snapshot.id === before && state.metric !== "age") return;
  answers.clear();
  answers.set(keyOf("v1/matrix", questionOf(state.metric)), matrix);
  details.forget();
  await draw(false);
}

await show(async () => {
  const [known] = await Promise.all([get("v1/regions"), matrixOf(state.metric)]);
  places = new Map(known.regions.map((region) => [region.id, region]));
  details = detailsOf(places, async (src, dst) => {
    const { regions, values } = await matrixOf("aggregate");
    return (values[regions.indexOf(src)]?.[regions.indexOf(dst)] ?? null) !== null;
  });
  replace(content, parts.empty, parts.controls, parts.finding, parts.legend, parts.zoom,
    parts.layout = element("div", { class: "matrix-layout" }, parts.grid, details.panel), parts.blocks);
  controls(known.regions);
  table = new MatrixTable(parts.grid, {
    zoom: ([rows, columns]) => change({ rows: rangeOf(table.matrix.regions, rows), columns: rangeOf(table.matrix.regions, columns) }),
    out: () => (state.rows || state.columns) && change({ rows: "", columns: "" }),
    point: (pair) => details.show(table.matrix, pair),
    open: ({ src, dst }, newTab) => {
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
  resized = setTimeout(() => table && parts.grid.clientWidth !== table.width && show(() => draw()), 200);
});
setInterval(() => show(renew), RENEW_MS);
