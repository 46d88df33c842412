// The matrix page: one figure for every pair of regions. The address keeps what is shown.

import { get } from "../shared/api.js";
import { element, replace } from "../shared/dom.js";
import { figure } from "../shared/format.js";
import { blocksTable, sentence } from "./blocks.js";
import { Details } from "./details.js";
import { legend } from "./legend.js";
import { METRICS, scaleOf } from "../shared/metrics.js";
import { GROUPS, ordered, providerOf, providerTitle, SORTS } from "./order.js";
import { MatrixTable } from "./table.js";
import { pairAddress } from "../shared/pairs.js";
import { content, emptyState, restsOn, say, show } from "../shared/shell.js";

const DIGITS = 4; // more than a colour shows; exact figures come with the pair
const RENEW_MS = 60000;
const DEFAULTS = { metric: "aggregate", group: "provider", sort: "name", from: "", to: "", measured: "", connections: "64" };
const ALLOWED = {
  metric: Object.keys(METRICS), group: Object.keys(GROUPS), sort: Object.keys(SORTS), measured: ["", "1"],
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

// The newest choice wins, whatever the order in which answers come.
let turn = 0;
async function draw({ isRebuilt = true, renew = false } = {}) {
  turn += 1;
  const mine = turn;
  const { metric } = state;
  parts.grid.setAttribute("aria-busy", "true");
  let matrix;
  try {
    matrix = await matrixOf(metric, { renew });
  } finally {
    if (mine === turn) parts.grid.removeAttribute("aria-busy");
  }
  if (mine !== turn) return;
  restsOn(matrix.snapshot);
  const scale = scaleOf(metric, matrix.values);
  // Regions keep their places as the metric changes, unless their places follow from it.
  const isSame = table.matrix && table.matrix.regions.join() === matrix.regions.join();
  if (isRebuilt || !isSame || state.sort !== "name") build(matrix, scale);
  table.paint(matrix, metric, scale);
  replace(parts.legend, legend(metric, scale, matrix));
  replace(parts.blocks, blocksTable(metric, matrix));
  showFinding();
  showEmpty(matrix);
  details.again(matrix, metric);
  document.body.dataset.shown = metric;
}

function build(matrix, scale) {
  const groups = ordered(matrix, scale, places, state);
  const only = (provider) => groups
    .map((group) => ({ ...group, members: group.members.filter((at) => !provider || providerOf(matrix.regions[at]) === provider) }))
    .filter((group) => group.members.length);
  const label = state.group === "provider" ? (id) => id.slice(id.indexOf(":") + 1) : (id) => id;
  const hadFocus = parts.grid.contains(document.activeElement);
  table.build(matrix, only(state.from), only(state.to), label);
  if (hadFocus) table.current?.cell.focus({ preventScroll: true });
}

function showFinding() {
  const found = sentence(state.metric, Object.fromEntries(Object.keys(METRICS).map((metric) => [metric, atHand(metric)])));
  replace(parts.finding, found ? [element("strong", {}, "What this shows: "), found] : null);
}

function showEmpty(matrix) {
  const command = (text) => element("code", {}, text);
  if (!matrix.regions.length) {
    replace(parts.empty, emptyState("No region has a throughput measurement", element("p", {}, "Show all regions to see estimates.")));
  } else if (matrix.snapshot.source === "baseline") {
    replace(parts.empty, emptyState("Nothing is measured yet: every figure here is baseline",
      element("p", {}, "These are models fitted to open measurements, hatched below. To put your own in their place:"),
      element("ul", {},
        element("li", {}, command("relayd lab up"), " emulates datacenters on this machine to try it out,"),
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

function controls(providers) {
  if (state.from && !providers.includes(state.from)) state.from = "";
  if (state.to && !providers.includes(state.to)) state.to = "";
  const choices = [["", "all"], ...providers.map((name) => [name, providerTitle(name)])];
  const connections = select("connections", "Connections", [["1", "1"], ["8", "8"], ["64", "64"]]);
  const fit = () => { connections.hidden = state.metric !== "relay-gain"; };
  replace(parts.controls,
    radios("metric", "Figure", Object.fromEntries(Object.entries(METRICS).map(([name, metric]) => [name, metric.title]))),
    element("div", { class: "row" },
      select("group", "Group by", Object.entries(GROUPS).map(([value, text]) => [value, text.toLowerCase()])),
      select("sort", "Sort by", Object.entries(SORTS).map(([value, text]) => [value, text.toLowerCase()])),
      select("from", "From", choices), select("to", "To", choices), connections,
      element("label", {}, element("input", { type: "checkbox", name: "measured", checked: Boolean(state.measured) }), "Measured only")));
  fit();
  parts.controls.addEventListener("submit", (event) => event.preventDefault());
  parts.controls.addEventListener("change", ({ target }) => {
    state[target.name] = target.type === "checkbox" ? (target.checked ? "1" : "") : target.value;
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
  say("Asking for the matrix ...");
  const [known] = await Promise.all([get("v1/regions"), matrixOf(state.metric)]);
  places = new Map(known.regions.map((region) => [region.id, region]));
  details = new Details(places, async (src, dst) => (await matrixOf("aggregate")).values[src][dst] !== null);
  replace(content, parts.empty, parts.controls, parts.finding, parts.legend,
    element("div", { class: "matrix-layout" }, parts.grid, details.panel), parts.blocks);
  controls([...new Set(known.regions.map((region) => region.provider))].sort());
  table = new MatrixTable(parts.grid, {
    point: (pair) => pair && details.show(table.matrix, state.metric, pair),
    open: ({ src, dst }, newTab) => {
      const address = pairAddress(table.matrix.regions[src], table.matrix.regions[dst]);
      if (newTab) window.open(address, "_blank", "noopener");
      else location.assign(address);
    },
  });
  await draw();
  say("");
  await compare();
});
let resized = 0;
addEventListener("resize", () => {
  clearTimeout(resized);
  // Not for what comes and goes at the top of a phone's browser.
  resized = setTimeout(() => table && parts.grid.clientWidth !== table.width && show(() => draw()), 200);
});
setInterval(() => show(renew), RENEW_MS);
