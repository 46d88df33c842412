// What is believed of a pair, both directions side by side, and what that means in words.

import { band } from "../shared/band.js";
import { element, facts, scrolling } from "../shared/dom.js";
import { UNKNOWN, figure, gbps, mbps, ms, percent, perGb, times } from "../shared/format.js";
import { saturating } from "./metrics.js";
import { age, tag, withCode } from "../shared/parts.js";

const SOURCES = { measured: "measured", inferred: "inferred", baseline: "baseline" };

export const sourceTag = (source) => element("span", { class: `tag source-${source}` }, SOURCES[source] ?? source);

export function stateBanner(there, back) {
  const told = [there, back].filter((each) => each?.state).map(({ link, state }) =>
    element("p", {}, element("strong", { class: state.condition === "down" ? "bad" : "warn" }, `${link.src} → ${link.dst} is ${state.condition}`),
      ` since ${state.since.replace("T", " ")}: ${state.reason}. Plans go around it${state.condition === "down" ? "" : " or take it as slow as it is"} until it is back; what it usually does stands under Evidence.`));
  return told.length ? element("div", { class: "problem pair-state", role: "note" }, told) : null;
}

// The answer first: one flow against many, and the two directions.
export function lead(there, back) {
  const { link, sender, receiver } = there;
  const connections = saturating(link);
  const said = [];
  if (connections === null) {
    said.push("Nothing gets through now.");
  } else if (connections === 1) {
    said.push(`One flow carries all that this pair can: ${gbps(link.aggregate_gbps.expected)}.`);
  } else {
    said.push(`One flow carries ${mbps(link.per_flow_mbps.expected)}; ${connections} or more carry ${gbps(link.aggregate_gbps.expected)} together, ${times(link.aggregate_gbps.expected * 1000 / link.per_flow_mbps.expected)} as much.`);
    const cap = Math.min(sender.egress_gbps?.expected ?? Infinity, receiver.ingress_gbps?.expected ?? Infinity);
    if (Number.isFinite(cap)) {
      const end = cap === sender.egress_gbps?.expected ? "the sending VM's egress cap" : "the receiving VM's ingress cap";
      said.push(`That is ${Math.round(100 * link.aggregate_gbps.expected / cap)} % of ${end} (${gbps(cap)}).`);
    }
    said.push(LIMITS[link.limited_by].lead);
  }
  if (link.address === "private") said.push("These VMs reach each other over private addresses.");
  const other = back?.link;
  if (other && saturating(other) !== null && connections !== null) {
    const ratio = link.aggregate_gbps.expected / other.aggregate_gbps.expected;
    if (ratio > 1.15 || ratio < 1 / 1.15) {
      said.push(`The reverse direction carries ${ratio > 1 ? "less" : "more"}: ${gbps(other.aggregate_gbps.expected)}.`);
    }
  }
  return element("p", { class: "lead" }, said.join(" "));
}

const ROWS = [
  { name: "Round-trip time", unit: "ms", quantity: "rtt_ms", of: (pair) => pair.link.rtt_ms },
  { name: "One flow", unit: "Mbit/s", quantity: "per_flow_mbps", of: (pair) => pair.link.per_flow_mbps },
  { name: "Many flows together", unit: "Gbit/s", quantity: "aggregate_gbps", of: (pair) => pair.link.aggregate_gbps },
  { name: "Sender's egress cap", unit: "Gbit/s", quantity: "egress_gbps", of: (pair) => pair.sender.egress_gbps },
  { name: "Receiver's ingress cap", unit: "Gbit/s", quantity: "ingress_gbps", of: (pair) => pair.receiver.ingress_gbps },
  { name: "Receiver's window", unit: "MB", quantity: "window_mb", of: (pair) => pair.receiver.window_mb },
];

// What holds many flows where they are, in short and as advice.
const LIMITS = {
  vm: { short: "a VM's cap", lead: "A VM's cap holds it there: more connections don't help, more VMs do." },
  window: { short: "the windows of its connections", lead: "The windows of its connections hold it there: more connections carry more." },
  path: { short: "the path", lead: "The path between holds it back: more connections brought nothing, and a relay may help." },
  unknown: { short: "unknown", lead: "What holds it there is unknown: plans are careful to be right either way." },
};

// openEvidence(quantity): shows what a figure was made of.
export function factsPanel(there, back, openEvidence) {
  const heads = (name) => element("th", { scope: "colgroup", role: "columnheader", colspan: 3, class: "direction" }, name);
  const columns = ["Expected", "Low to high", "Source"].map((name, at) => element("th", { scope: "col", role: "columnheader", class: at < 2 ? "number" : null }, name));
  const again = columns.map((column) => column.cloneNode(true));
  return element("section", { class: "panel wide", id: "figures" }, element("h3", {}, "Both directions"),
    element("p", { class: "muted" }, "Nine of ten true values lie between low and high. Caps and windows are of one VM."),
    scrolling("Both directions",
      element("table", { class: "directions", role: "table" }, element("caption", { class: "hidden-text" }, "Figures of both directions"),
        element("thead", { role: "rowgroup" },
          line("", element("td", { role: "cell" }), heads(`${there.link.src} →`), heads(`← ${there.link.dst}`), element("td", { role: "cell" })),
          line("", element("th", { scope: "col", role: "columnheader" }, "Figure"), columns, again, element("th", { scope: "col", role: "columnheader", class: "number" }, "There / back"))),
        element("tbody", { role: "rowgroup" }, ROWS.map((row) => estimateRow(row, there, back)), lossRow(there, back), limitRow(there, back), saturationRow(there, back), feeRow(there, back)))),
    element("h4", {}, "On what these rest"),
    facts(ROWS.map((row) => [element("button", { type: "button", class: "link", on: { click: () => openEvidence(row.quantity) } }, row.name), basis(row.of(there))])),
    there.link.limited_by === "unknown" && element("p", { class: "muted" }, withCode(`What limits many flows is unknown: no test with more and more connections has shown it. \`relayd probe --pairs '${there.link.src}>${there.link.dst}' --ramp\` does.`)));
}

// Roles are said because rows that phones lay out in lines would lose them.
const line = (kind, ...cells) => element("tr", { role: "row", class: kind || null }, cells);
function estimateRow(row, there, back) {
  const [one, other] = [row.of(there), back ? row.of(back) : null];
  const most = Math.max(...[one, other].map((each) => each?.high).filter(Number.isFinite), 0);
  return line("", name(row.name, row.unit), cells(one, most, row), cells(other, most, row), ratioCell(one?.expected, other?.expected));
}

const name = (text, unit) => element("th", { scope: "row", role: "rowheader" }, text, unit ? element("small", { class: "muted" }, ` ${unit}`) : null);
const number = (text) => element("td", { role: "cell", class: "number" }, text);
const ratioCell = (one, other) => number(one > 0 && other > 0 ? times(one / other) : UNKNOWN);

function cells(estimate, most, row) {
  if (!estimate) return [number(UNKNOWN), number(""), element("td", { role: "cell" }, "")];
  return [
    element("td", { role: "cell", class: "number expected" }, figure(estimate.expected)),
    number([`${figure(estimate.low)} to ${figure(estimate.high)}`, Number.isFinite(estimate.expected) && band(estimate, most,
      `${row.name}: ${figure(estimate.expected)} ${row.unit}, ${figure(estimate.low)} to ${figure(estimate.high)}`, { width: 90 })]),
    element("td", { role: "cell" }, sourceTag(estimate.source)),
  ];
}

function lossRow(there, back) {
  const loss = (pair) => (pair?.link.loss_pct ?? null);
  const three = (value) => [element("td", { role: "cell", class: "number expected" }, value === null ? UNKNOWN : figure(value)), number(""),
    element("td", { role: "cell" }, value === null ? "" : sourceTag("measured"))];
  return line("", name("Loss", "%"), three(loss(there)), three(loss(back)), number(""));
}

function limitRow(there, back) {
  const of = (pair) => {
    const short = pair && LIMITS[pair.link.limited_by].short;
    return element("td", { role: "cell", colspan: 3 }, pair?.link.limited_by === "unknown" ? tag(short, "warn") : short ?? UNKNOWN);
  };
  return line("limits", name("Limited by"), of(there), of(back), number(""));
}

function saturationRow(there, back) {
  const of = (pair) => (pair ? saturating(pair.link) : null);
  const three = (value) => [element("td", { role: "cell", class: "number expected" }, value ?? UNKNOWN), number(""), element("td", { role: "cell" }, "")];
  return line("", name("Connections that saturate"), three(of(there)), three(of(back)), ratioCell(of(there), of(back)));
}

function feeRow(there, back) {
  const three = (pair) => [element("td", { role: "cell", class: "number expected" }, pair && pair.usd_per_gb !== null ? perGb(pair.usd_per_gb).slice(1, -3) : UNKNOWN), number(""), element("td", { role: "cell" }, "price list")];
  return line("", name("Egress fee", "$/GB"), three(there), three(back), ratioCell(there.usd_per_gb, back?.usd_per_gb));
}

// In words: from what, how many samples, how old.
function basis(estimate) {
  if (!estimate) return "Not known: no VM type, no measurement.";
  const parts = [];
  if (estimate.source === "measured" && estimate.samples) parts.push(`${estimate.samples} ${estimate.samples === 1 ? "sample" : "samples"}`);
  if (estimate.basis) parts.push(estimate.basis);
  const newest = estimate.measured_at_s === null ? null : [parts.length ? "; " : "", "newest ", age(estimate)];
  return [sourceTag(estimate.source), ` ${parts.join("; ")}`, newest];
}

export const shownAs = {
  rtt_ms: ms, per_flow_mbps: mbps, aggregate_gbps: gbps, loss_pct: percent, egress_gbps: gbps, ingress_gbps: gbps,
  window_mb: (value) => (value === null ? UNKNOWN : `${figure(value)} MB`),
};
