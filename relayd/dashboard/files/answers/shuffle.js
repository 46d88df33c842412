// A shuffle: what every pair keeps to, as a matrix and as a table.

import { breakable, element, scrolling, sortable } from "../shared/dom.js";
import { count, duration, percent, perGb, rate, volume } from "../shared/format.js";
import { pairAddress, pairLink } from "../shared/pairs.js";
import { pathLinks } from "../transfer/figures.js";
import { advice, basis, bottleneck, costOf, frontierTable, panel, sideBySide, timeOf, vmsOf, widePanel } from "./parts.js";
import { verdictPanel } from "./verdict.js";

const MOST_NAMES = 30;

export const spoken = (plan) => (plan.verdict === "direct" ? "Send every pair direct, at these rates" : "Relay a part of it");

const relayedShare = (pair) => pair.paths.filter((path) => path.regions.length > 2).reduce((sum, path) => sum + path.share, 0);

// Rates from row to column, as dark as they are high; what is relayed in part has a frame.
function matrix(plan) {
  const [sources, targets] = ["src", "dst"].map((end) => [...new Set(plan.pairs.map((pair) => pair[end]))].sort());
  if (sources.length > MOST_NAMES || targets.length > MOST_NAMES) return null;
  const pairs = new Map(plan.pairs.map((pair) => [`${pair.src} ${pair.dst}`, pair]));
  const most = Math.max(...plan.pairs.map((pair) => pair.throughput_gbps));
  const cell = (src, dst) => {
    const pair = pairs.get(`${src} ${dst}`);
    if (!pair) return element("td", { class: "number none" }, "");
    const relayed = relayedShare(pair);
    const made = element("td", { class: `number rate-cell${relayed ? " relayed" : ""}` },
      element("a", { href: pairAddress(src, dst), title: `${src} to ${dst}: ${volume(pair.volume_gb)}, ${percent(100 * relayed)} relayed` }, rate(pair.throughput_gbps)));
    made.style.setProperty("--share", `${Math.round((40 * pair.throughput_gbps) / most)}%`);
    return made;
  };
  return panel("matrix", "Rates to keep to, Gbit/s", scrolling("Rates by pair",
    element("table", { class: "rates" }, element("caption", {}, "From the row to the column; a pair with a frame is relayed, all or in part."),
      element("thead", {}, element("tr", {}, element("td"), targets.map((name) => element("th", { scope: "col" }, breakable(name))))),
      element("tbody", {}, sources.map((src) => element("tr", {}, element("th", { scope: "row" }, src), targets.map((dst) => cell(src, dst))))))));
}

function pairs(plan) {
  const of = (pair, path) => element("div", {}, percent(100 * path.share), " ", pathLinks(path.regions));
  return widePanel("pairs", "Pairs", sortable("Every pair, and over what it goes", [
    { title: "Pair", value: (pair) => `${pair.src} ${pair.dst}`, shown: (pair) => pairLink(pair.src, pair.dst) },
    { title: "Volume", number: true, value: (pair) => pair.volume_gb, shown: (pair) => volume(pair.volume_gb) },
    { title: "Throughput", unit: "Gbit/s", number: true, value: (pair) => pair.throughput_gbps, shown: (pair) => rate(pair.throughput_gbps) },
    { title: "Ends after", number: true, value: (pair) => pair.duration_s, shown: (pair) => duration(pair.duration_s) },
    { title: "Egress", number: true, value: (pair) => fee(pair), shown: (pair) => perGb(fee(pair)) },
    { title: "Paths", value: (pair) => relayedShare(pair), shown: (pair) => pair.paths.map((path) => of(pair, path)) },
  ], plan.pairs, { order: 3, descending: true }));
}
const fee = (pair) => pair.paths.reduce((sum, path) => sum + path.share * path.egress_usd_per_gb, 0);

export function shown(plan, { commands }) {
  const regions = new Set(plan.pairs.flatMap((pair) => [pair.src, pair.dst]));
  return {
    head: verdictPanel(plan, {
      kind: plan.verdict === "direct" ? "direct" : "split", mark: plan.verdict === "direct" ? "→" : "⇉", title: spoken(plan),
      ends: `${count(plan.pairs.length)} pairs among ${regions.size} regions, ${volume(plan.volume_gb)}`,
      headline: [timeOf(plan), costOf(plan), vmsOf(plan), ["Relayed", percent(100 * plan.relayed_share), `not before ${duration(plan.bound_s)}, proven`]],
    }),
    body: [
      element("div", { class: "stack" },
        sideBySide([["All at once, no plan", plan.equal_share, "direct"], ["Best direct rates", plan.direct, "direct"], [`Chosen: ${plan.verdict}`, plan, "chosen"]]), matrix(plan)),
      element("div", { class: "stack" }, bottleneck(plan), advice(plan), commands), pairs(plan),
      frontierTable(plan.frontier, [{ title: "Relayed", number: true, value: (point) => point.relayed_share, shown: (point) => percent(100 * point.relayed_share) }]), basis(plan),
    ],
  };
}
