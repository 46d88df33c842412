// The matrix page: one figure for every pair of regions. The address keeps what is shown.

import { get } from "../shared/api.js";
import { element, replace } from "../shared/dom.js";
import { figure } from "../shared/format.js";
import { blocksTable, sentence } from "./blocks.js";
import { comparedSentence, ranked } from "./compare.js";
import { Details } from "./details.js";
import { legend } from "./legend.js";
import { ASKED_METRICS, METRICS, scaleOf } from "../shared/metrics.js";
import { GROUPS, MOST_SIMILAR, ordered, providerTitle, SORTS } from "./order.js";
import { COUNTRY, rangeOf, selected, truncated } from "./selection.js";
import { MatrixTable } from "./table.js";
import { pairAddress } from "../shared/pairs.js";
import { oldPrices } from "../shared/prices.js";
import { content, emptyState, restsOn, say, show } from "../shared/shell.js";

const DIGITS = 4; // more than a colour shows; exact figures come with the pair
const RENEW_MS = 60000;
const MOST_SHOWN = 120; // rows and columns of the table
const DEFAULTS = {
  metric: "aggregate", group: "provider", sort: "name", from: "", to: "", src: "", dst: "", with: "", rows: "", columns: "", empty: "",
  measured: "", connections: "64",
};
const ALLOWED = {
  metric: ASKED_METRICS, group: Object.keys(GROUPS), sort: Object.keys(SORTS), measured: ["", "1"], empty: ["", "1"],
  connections: ["1", "8", "64"],
};

const state = { ...DEFAULTS };
for (const [name, value] of new URLSearchParams(location.search)) {
  if (Object.hasOwn(DEFAULTS, name) && (ALLOWED[name]?.includes(value) ?? true)) state[name] = value;
}

const matrices = new Map(); // by what was asked
let places = new Map();
let details = null;
let table = null;
const parts = {
  empty: element("div"), controls: element("form", { class: "controls", "aria-label": "What the matrix shows" }),
  finding: element("p", { class: "finding" }), legend: element("div"),
  zoom: element("p", { class: "zoom row", role: "status" }),
  grid: element("div", { class: "scroll matrix-scroll" }), blocks: element("div"),
};

function keep() {
  const query = new URLSearchParams(Object.entries(state).filter(([name, value]) => value !== DEFAULTS[name]));
  history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
}

const questionOf = (metric) => ({
  metric, digits: DIGITS, measured_only: state.measured ? "true" : undefined,
  connections: metric === "relay-gain" ? state.connections : undefined,
});

async function matrixOf(metric, { renew = false } = {}) {
  const question = questionOf(metric);
  const key = JSON.stringify(question);
  if (renew || !matrices.has(key)) matrices.set(key, await get("v1/matrix", question));
  return matrices.get(key);
}

const atHand = (metric) => matrices.get(JSON.stringify(questionOf(metric)));

// What is shown: a figure, or how it compares with another one.
async function shownMatrix({ renew }) {
  const { metric, with: other } = state;
  const own = await matrixOf(metric, { renew });
  if (!other || other === metric) return own;
  return ranked(metric, own, other, await matrixOf(other));
}

// The newest choice wins, whatever the order in which answers come.
let turn = 0;
async function draw({ isRebuilt = true, renew = false } = {}) {
  turn += 1;
  const mine = turn;
  parts.grid.setAttribute("aria-busy", "true");
  let matrix, outdated;
  try {
    // A matrix of prices is shown also where nobody can say how old they are.
    [matrix, outdated] = await Promise.all([shownMatrix({ renew }), state.metric === "fee" ? oldPrices().catch(() => null) : null]);
  } finally {
    if (mine === turn) parts.grid.removeAttribute("aria-busy");
  }
  if (mine !== turn) return;
  restsOn(matrix.snapshot);
  const { metric } = matrix;
  const isOne = metric === state.metric;
  const scale = scaleOf(metric, matrix.values);
  const picked = truncated(selected(matrix, ordered(matrix, scale, places, state), places, state), MOST_SHOWN);
  // A figure that no pair has is a sentence, not an empty matrix. What is hidden has no width, and the
  // table is as wide as there is room.
  const isEmpty = !picked.rows.length || !picked.columns.length;
  parts.layout.hidden = isEmpty;
  // Regions keep their places as the metric changes, unless their places follow from it.
  const shown = JSON.stringify([matrix.regions, picked.rows, picked.columns]);
  if (isRebuilt || built !== shown) build(matrix, picked);
  built = shown;
  table.paint(matrix, metric, scale);
  showZoom(picked);
  replace(parts.legend, !isEmpty && [outdated, legend(metric, scale, matrix)]);
  replace(parts.blocks, isOne && !isEmpty && blocksTable(metric, matrix));
  showFinding(matrix);
  showEmpty(matrix);
  details.again(matrix, metric);
  document.body.dataset.shown = state.metric;
}

let built = "";
const count = (groups) => groups.reduce((sum, group) => sum + group.members.length, 0);

function build(matrix, { rows, columns }) {
  const label = state.group === "provider" ? (id) => id.slice(id.indexOf(":") + 1) : (id) => id;
  const hadFocus = parts.grid.contains(document.activeElement);
  table.build(matrix, rows, columns, label);
  if (hadFocus) table.current?.cell?.focus({ preventScroll: true });
}

// What is not shown, and how to see it.
function showZoom({ rows, columns, all, empty, isTruncated }) {
  const said = [];
  if (isTruncated) said.push(`Only the first ${MOST_SHOWN} rows and columns are shown: choose a provider, a country or a name to see others.`);
  if (state.rows || state.columns) said.push(`${count(rows)} × ${count(columns)} of ${all.join(" × ")} pairs are shown.`);
  const left = [`${empty[0]} rows`, `${empty[1]} columns`].filter((_, at) => empty[at]).join(" and ");
  if (left) said.push(`${left} without a figure are left out.`);
  const button = (text, changes) => element("button", { type: "button", on: { click: () => change(changes) } }, text);
  replace(parts.zoom, said.join(" "), (state.rows || state.columns) && button("Zoom out", { rows: "", columns: "" }),
    left && button("Show them", { empty: "1" }), state.empty && button("Leave out rows and columns without a figure", { empty: "" }));
}

function change(changes) {
  Object.assign(state, changes);
  keep();
  return show(() => draw());
}

// first and last of rows and of columns, by their places in what is shown.
function zoom(rows, columns) {
  const { regions } = table.matrix;
  return change({ rows: rangeOf(regions, table.rows, ...rows), columns: rangeOf(regions, table.columns, ...columns) });
}
const zoomOut = () => (state.rows || state.columns) && change({ rows: "", columns: "" });

function showFinding(matrix) {
  const found = matrix && matrix.metric !== state.metric ? comparedSentence(matrix) : sentence(state.metric, Object.fromEntries(Object.keys(METRICS).map((metric) => [metric, atHand(metric)])));
  replace(parts.finding, found ? [element("strong", {}, "What this shows: "), found] : null);
}

function showEmpty(matrix) {
  const command = (text) => element("code", {}, text);
  if (!matrix.regions.length) {
    replace(parts.empty, emptyState("No region has a throughput measurement",
      element("p", {}, element("button", { type: "button", on: { click: () => parts.controls.elements.measured.click() } }, "Show all regions with their estimates"))));
  } else if (matrix.snapshot.source === "baseline") {
    replace(parts.empty, emptyState("Nothing is measured yet: every figure here is baseline",
      element("p", {}, "These are models fitted to open measurements, hatched below. To put your own in their place:"),
      element("ul", {},
        element("li", {}, command("relayd measure lab up"), " emulates datacenters on this machine to try it out,"),
        element("li", {}, command("relayd probe"), " measures between your hosts,"),
        element("li", {}, command("relayd import"), " takes results of iperf3, nuttcp, ping, or CSV."))));
  } else {
    replace(parts.empty);
  }
}

function radios(name, title, choices) {
  return element("fieldset", { class: "choice" }, element("legend", { class: "hidden-text" }, title), Object.entries(choices).map(([value, text]) =>
    element("label", {}, element("input", { type: "radio", name, value, checked: state[name] === value }), element("span", {}, text))));
}

function select(name, title, choices) {
  return element("label", {}, title, element("select", { name }, choices.map(([value, text]) =>
    element("option", { value, selected: state[name] === value }, text))));
}

const PROVIDER_OR_COUNTRY = (known) => {
  const each = (name) => [...new Set(known.map((region) => region[name]).filter(Boolean))].sort();
  return [["", "all"], ...each("provider").map((name) => [name, providerTitle(name)]), ...each("country").map((name) => [`${COUNTRY}${name}`, `in ${name}`])];
};
const text = (name, title) => element("input", { type: "search", name, value: state[name], "aria-label": title, placeholder: "region, city" });

function controls(known) {
  const choices = PROVIDER_OR_COUNTRY(known);
  for (const end of ["from", "to"]) if (!choices.some(([value]) => value === state[end])) state[end] = "";
  const connections = select("connections", "Connections", [["1", "1"], ["8", "8"], ["64", "64"]]);
  const compared = select("with", "Compare with", [["", "nothing"], ...ASKED_METRICS.map((name) => [name, METRICS[name].title])]);
  const fit = () => { connections.hidden = state.metric !== "relay-gain"; };
  replace(parts.controls,
    radios("metric", "Figure", Object.fromEntries(ASKED_METRICS.map((name) => [name, METRICS[name].title]))),
    element("div", { class: "row" },
      select("group", "Group by", Object.entries(GROUPS).map(([value, title]) => [value, title.toLowerCase()])),
      select("sort", "Sort by", Object.entries(SORTS).filter(([value]) => value !== "similar" || known.length <= MOST_SIMILAR)
        .map(([value, title]) => [value, title.toLowerCase()])),
      select("from", "From", choices), text("src", "From, by name"), select("to", "To", choices), text("dst", "To, by name"), compared, connections,
      element("label", {}, element("input", { type: "checkbox", name: "measured", checked: Boolean(state.measured) }), "Measured only")));
  fit();
  parts.controls.addEventListener("submit", (event) => event.preventDefault());
  parts.controls.addEventListener("change", ({ target }) => {
    state[target.name] = target.type === "checkbox" ? (target.checked ? "1" : "") : target.value;
    // What was zoomed to is a part of an order.
    if (["group", "sort", "from", "to", "src", "dst"].includes(target.name)) Object.assign(state, { rows: "", columns: "" });
    keep();
    fit();
    show(async () => {
      await draw({ isRebuilt: target.name !== "metric" && target.name !== "connections" });
      await compare();
    });
  });
}

// One flow beside many: the sentence needs both, the first view only one of them.
async function compare() {
  if (state.with) return;
  if (state.metric !== "per-flow" && state.metric !== "aggregate") return;
  await matrixOf(state.metric === "aggregate" ? "per-flow" : "aggregate");
  showFinding();
}

async function renew() {
  if (document.hidden || !table) return;
  const before = atHand(state.metric)?.snapshot.id;
  const matrix = await matrixOf(state.metric, { renew: true });
  if (matrix.snapshot.id === before && state.metric !== "age") return;
  const key = JSON.stringify(questionOf(state.metric));
  for (const name of [...matrices.keys()]) if (name !== key) matrices.delete(name);
  details.forget();
  await draw({ isRebuilt: false });
  await compare();
}

await show(async () => {
  const [known] = await Promise.all([get("v1/regions"), matrixOf(state.metric)]);
  places = new Map(known.regions.map((region) => [region.id, region]));
  details = new Details(places, async (src, dst) => (await matrixOf("aggregate")).values[src][dst] !== null);
  replace(content, parts.empty, parts.controls, parts.finding, parts.legend, parts.zoom,
    parts.layout = element("div", { class: "matrix-layout" }, parts.grid, details.panel), parts.blocks);
  controls(known.regions);
  table = new MatrixTable(parts.grid, {
    zoom, out: zoomOut,
    point: (pair) => pair && details.show(table.matrix, table.matrix.metric, pair),
    open: ({ src, dst }, newTab) => {
      const address = pairAddress(table.matrix.regions[src], table.matrix.regions[dst]);
      if (newTab) window.open(address, "_blank", "noopener");
      else location.assign(address);
    },
  });
  await draw();
  await compare();
});
let resized = 0;
addEventListener("resize", () => {
  clearTimeout(resized);
  // Not for what comes and goes at the top of a phone's browser.
  resized = setTimeout(() => table && parts.grid.clientWidth !== table.width && show(() => draw()), 200);
});
setInterval(() => show(renew), RENEW_MS);
