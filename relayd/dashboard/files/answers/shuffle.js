// A shuffle: what every pair keeps to, as a matrix and as a table.

import { breakable, element, number, scrolling, sortable, words } from "../shared/dom.js";
import { count, duration, percent, perGb, rate, volume } from "../shared/format.js";
import { pairAddress, pairLink } from "../shared/pairs.js";
import { folded, panel } from "../shared/parts.js";
import { pathLinks } from "../transfer/figures.js";
import { advice, basis, bottleneck, costOf, frontierTable, sideBySide, timeOf, verdictPanel, vmsOf } from "./parts.js";

const MOST_NAMES = 30;

export const spoken = (plan) => (plan.verdict === "direct" ? "Send every pair direct, at these rates" : "Relay a part of it");

const relayedShare = (pair) => pair.paths.filter((path) => path.regions.length > 2).reduce((sum, path) => sum + path.share, 0);
const fee = (pair) => pair.paths.reduce((sum, path) => sum + path.share * path.egress_usd_per_gb, 0);

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

const pairsOf = (plan) => folded("pairs", "Pairs", sortable("Every pair, and over what it goes", [
  words("Pair", (pair) => `${pair.src} ${pair.dst}`, (_, pair) => pairLink(pair.src, pair.dst)),
  number("Volume", "volume_gb", volume),
  number("Throughput", "throughput_gbps", rate, "Gbit/s"),
  number("Ends after", "duration_s", duration),
  number("Egress", fee, perGb),
  words("Paths", relayedShare, (_, pair) => pair.paths.map((path) => element("div", {}, percent(100 * path.share), " ", pathLinks(path.regions)))),
], plan.pairs, { order: 3, descending: true }));

export function shown(plan, { commands }) {
  const regions = new Set(plan.pairs.flatMap((pair) => [pair.src, pair.dst]));
  const isDirect = plan.verdict === "direct";
  return {
    head: verdictPanel(plan, {
      kind: isDirect ? "direct" : "split", mark: isDirect ? "→" : "⇉", title: spoken(plan),
      ends: `${count(plan.pairs.length)} pairs among ${regions.size} regions, ${volume(plan.volume_gb)}`,
      headline: [timeOf(plan), costOf(plan), vmsOf(plan), ["Relayed", percent(100 * plan.relayed_share), `not before ${duration(plan.bound_s)}, proven`]],
    }),
    body: [
      element("div", { class: "stack" },
        sideBySide([["All at once, no plan", plan.equal_share, "direct"], ["Best direct rates", plan.direct, "direct"], [`Chosen: ${plan.verdict}`, plan, "chosen"]]), matrix(plan)),
      element("div", { class: "stack" }, bottleneck(plan), advice(plan), commands),
      frontierTable(plan.frontier, [number("Relayed", "relayed_share", (share) => percent(100 * share))]), pairsOf(plan), basis(plan),
    ],
  };
}
