// What is believed of a pair, both directions side by side, and what that means in words.

import { bounded } from "../shared/band.js";
import { element } from "../shared/dom.js";
import { UNKNOWN, figure, gbps, mbps, ms, percent, perGb, times } from "../shared/format.js";
import { cardTable, small, tag, widePanel, withCode } from "../shared/parts.js";
import { saturating } from "./metrics.js";

export const sourceTag = (source) => element("span", { class: `tag source-${source}` }, source);

// Figures that evidence explains: their names, units, and how they are written. Rates of one scale, in
// Gbit/s, are seen against each other: whether more connections help, more VMs, or neither.
export const QUANTITIES = {
  rtt_ms: { name: "Round-trip time", unit: "ms", shown: ms, of: ({ link }) => link.rtt_ms },
  per_flow_mbps: { name: "One flow", unit: "Mbit/s", shown: mbps, of: ({ link }) => link.per_flow_mbps, in_gbps: 1e-3 },
  aggregate_gbps: { name: "Many flows together", unit: "Gbit/s", shown: gbps, of: ({ link }) => link.aggregate_gbps, in_gbps: 1 },
  egress_gbps: { name: "Sender's egress cap", unit: "Gbit/s", shown: gbps, of: ({ sender }) => sender.egress_gbps, in_gbps: 1 },
  ingress_gbps: { name: "Receiver's ingress cap", unit: "Gbit/s", shown: gbps, of: ({ receiver }) => receiver.ingress_gbps, in_gbps: 1 },
  window_mb: { name: "Receiver's window", unit: "MB", shown: (value) => (value === null ? UNKNOWN : `${figure(value)} MB`), of: ({ receiver }) => receiver.window_mb },
  loss_pct: { name: "Loss", unit: "%", shown: percent },
};

export function stateBanner(there, back) {
  const told = [there, back].filter((each) => each?.state).map(({ link, state }) =>
    element("p", {}, element("strong", { class: state.condition === "down" ? "bad" : "warn" }, `${link.src} → ${link.dst} is ${state.condition}`),
      ` since ${state.since.replace("T", " ")}: ${state.reason}. Plans go around it${state.condition === "down" ? "" : " or take it as slow as it is"} until it is back; what it usually does stands under Evidence.`));
  return told.length > 0 && element("div", { class: "problem pair-state", role: "note" }, told);
}

// What holds many flows where they are, in short and as advice.
const LIMITS = {
  vm: { short: "a VM's cap", lead: "A VM's cap holds it there: more connections don't help, more VMs do." },
  window: { short: "the windows of its connections", lead: "The windows of its connections hold it there: more connections carry more." },
  path: { short: "the path", lead: "The path between holds it back: more connections brought nothing, and a relay may help." },
  unknown: { short: "unknown", lead: "What holds it there is unknown: plans are careful to be right either way." },
};

// The answer first: one flow against many, and the two directions.
export function lead(there, back) {
  const { link, sender, receiver } = there;
  const connections = saturating(link);
  const many = link.aggregate_gbps.expected;
  const said = [];
  if (connections === null) {
    said.push("Nothing gets through now.");
  } else if (connections === 1) {
    said.push(`One flow carries all that this pair can: ${gbps(many)}.`);
  } else {
    const flow = link.per_flow_mbps.expected;
    said.push(`One flow carries ${mbps(flow)}; ${connections} or more carry ${gbps(many)} together, ${times(many * 1000 / flow)} as much.`);
    const cap = Math.min(sender.egress_gbps?.expected ?? Infinity, receiver.ingress_gbps?.expected ?? Infinity);
    if (Number.isFinite(cap)) {
      const end = cap === sender.egress_gbps?.expected ? "the sending VM's egress cap" : "the receiving VM's ingress cap";
      said.push(`That is ${Math.round(100 * many / cap)} % of ${end} (${gbps(cap)}).`);
    }
    said.push(LIMITS[link.limited_by].lead);
  }
  if (link.address === "private") said.push("These VMs reach each other over private addresses.");
  const other = back?.link;
  if (other && saturating(other) !== null && connections !== null) {
    const ratio = many / other.aggregate_gbps.expected;
    if (ratio > 1.15 || ratio < 1 / 1.15) {
      said.push(`The reverse direction carries ${ratio > 1 ? "less" : "more"}: ${gbps(other.aggregate_gbps.expected)}.`);
    }
  }
  return element("p", { class: "lead" }, said.join(" "));
}

const HEADS = [["Figure"], ["There", "number"], ["Low to high", "number"], ["Source"],
  ["Back", "number"], ["Low to high", "number"], ["Source"], ["There / back", "number"]];
// A figure of one direction: expected, its bounds, and from what it is.
const three = (expected, bounds = "", source = "") => [expected ?? UNKNOWN, bounds, source];
const ratio = (one, other) => (one > 0 && other > 0 ? times(one / other) : UNKNOWN);

// openEvidence(quantity): shows what a figure was made of.
export function factsPanel(there, back, openEvidence) {
  const both = (of) => [of(there), back && of(back)];
  const named = (text, unit) => [text, unit && small(` ${unit}`)];
  const opens = (quantity, { name }) =>
    element("button", { type: "button", class: "link", on: { click: () => openEvidence(quantity) } }, name);
  const rows = Object.entries(QUANTITIES).filter(([, { of }]) => of).map(([quantity, each]) => ({ ...each, quantity, estimates: both(each.of) }));
  const highest = ({ estimates, in_gbps: scale = 1 }) => Math.max(0, ...estimates.map((each) => (each?.high ?? 0) * scale).filter(Number.isFinite));
  const fastest = Math.max(...rows.filter((each) => each.in_gbps).map(highest));
  function cells(row) {
    const most = row.in_gbps ? fastest / row.in_gbps : highest(row);
    const of = (estimate) => {
      if (!estimate) return three(UNKNOWN);
      const bounds = bounded(estimate, `${row.name}, ${row.unit}: ${figure(estimate.expected)}`, figure, { most, width: 90 });
      return three(figure(estimate.expected), Number.isFinite(estimate.expected) ? bounds : bounds[0], sourceTag(estimate.source));
    };
    return [named(opens(row.quantity, row), row.unit), ...row.estimates.flatMap(of), ratio(...row.estimates.map((each) => each?.expected))];
  }
  const limit = (pair) => three(pair && (pair.link.limited_by === "unknown" ? tag("unknown", "warn") : LIMITS[pair.link.limited_by].short));
  const loss = (pair) => ((pair?.link.loss_pct ?? null) === null ? three() : three(figure(pair.link.loss_pct), "", sourceTag("measured")));
  const saturates = both(({ link }) => saturating(link));
  const fee = (pair) => ((pair?.usd_per_gb ?? null) === null ? three() : three(perGb(pair.usd_per_gb).slice(1, -3), "", "price list"));
  const { src, dst, limited_by: limits } = there.link;
  return widePanel("figures", "Both directions", cardTable("directions compact",
    `There is ${src} → ${dst}, back is ${dst} → ${src}. Nine of ten true values lie between low and high. Caps and windows are of one VM; bands of rates are on one scale. A name opens what its figure was made of.`,
    HEADS, [
      ...rows.map(cells),
      [named("Loss", "%"), ...loss(there), ...loss(back), ""],
      ["Limited by", ...limit(there), ...limit(back), ""],
      ["Connections that saturate", ...saturates.flatMap((value) => three(value)), ratio(...saturates)],
      [named("Egress fee", "$/GB"), ...fee(there), ...fee(back), ratio(there.usd_per_gb, back?.usd_per_gb)],
    ]),
  limits === "unknown" && element("p", { class: "muted" }, withCode(`What limits many flows is unknown: no test with more and more connections has shown it. \`relayd probe --pairs '${src}>${dst}' --ramp\` does.`)));
}
