// A broadcast: over which trees a volume reaches its destinations.

import { element, number, sortable, words } from "../shared/dom.js";
import { duration, figure, percent, perGb, rate, volume } from "../shared/format.js";
import { pairLink } from "../shared/pairs.js";
import { folded, panel } from "../shared/parts.js";
import { places } from "../shared/places.js";
import { placeOf } from "../transfer/figures.js";
import { mapPanel } from "../world/map.js";
import { advice, basis, bottleneck, costOf, frontierTable, sideBySide, throughputOf, timeOf, verdictPanel, vmsOf } from "./parts.js";

export function spoken({ verdict, trees }) {
  if (verdict === "direct") return "Send each copy direct";
  return verdict === "tree" ? "Forward copies over one tree" : `Forward copies over ${trees.length} trees at once`;
}

// Relays and destinations that send on what they receive.
const forwarders = ({ trees, request }) =>
  [...new Set(trees.flatMap((tree) => tree.legs.map((link) => link.src)))].filter((region) => region !== request.src);

// A tree as nested lists, from the source outwards.
function branches(tree, region) {
  const links = tree.legs.filter((link) => link.src === region);
  return links.length > 0 && element("ul", {}, links.map((link) => element("li", {}, pairLink(link.src, link.dst), branches(tree, link.dst))));
}

const treesOf = (plan) => folded("trees", plan.trees.length > 1 ? "Trees" : "Tree",
  element("div", { class: "grid" }, plan.trees.map((tree, at) => element("div", { class: "tree" },
    element("h3", {}, `Tree ${at + 1}: ${percent(100 * tree.share)} of the volume at ${rate(tree.throughput_gbps)} Gbit/s`),
    branches(tree, plan.request.src)))),
  sortable("Every link of every tree", [
    number("Tree", "tree"),
    words("Link", (link) => `${link.src} ${link.dst}`, (_, link) => pairLink(link.src, link.dst)),
    number("Throughput", "throughput_gbps", rate, "Gbit/s"),
    number("Connections", "connections", figure),
    number("Egress", "egress_usd_per_gb", perGb),
  ], plan.trees.flatMap((tree, at) => tree.legs.map((link) => ({ ...link, tree: at + 1 })))));

// Links that several trees use are one line.
function onMap(plan, regions) {
  const lines = new Map();
  for (const { src, dst, throughput_gbps, egress_usd_per_gb: fee } of plan.trees.flatMap((tree) => tree.legs)) {
    const gbps = (lines.get(`${src} ${dst}`)?.thickness ?? 0) + throughput_gbps;
    lines.set(`${src} ${dst}`, {
      src, dst, thickness: gbps, values: { aggregate: gbps, fee }, kind: "chosen",
      said: `${src} to ${dst}: ${rate(gbps)} Gbit/s, ${perGb(fee)}`,
    });
  }
  const all = [...lines.values()];
  return {
    regions, lines: all, kindTitle: "Link", said: placeOf,
    marked: [...new Set([plan.request.src, ...plan.destinations.map(({ region }) => region), ...all.flatMap((line) => [line.src, line.dst])])],
    label: `Map of ${plan.trees.length === 1 ? "the tree" : `${plan.trees.length} trees`} from ${plan.request.src}: ${lines.size} links`,
  };
}

export async function shown(plan, { commands }) {
  const { regions } = await places();
  const { request: { src }, destinations } = plan;
  return {
    head: verdictPanel(plan, {
      kind: plan.verdict === "direct" ? "direct" : "relay", mark: plan.verdict === "direct" ? "→" : "⤼", title: spoken(plan),
      ends: `${src} → ${destinations.map(({ region }) => region).join(", ")}, ${volume(plan.volume_gb)} each`,
      headline: [throughputOf(plan), timeOf(plan), costOf(plan), vmsOf(plan)],
    }),
    body: [
      sideBySide([
        ["Each copy direct", plan.direct, "direct"], ["All through one region", plan.best_relay, "relay"],
        ["Best forwarding", plan.optimum, "relay"], [`Chosen: ${plan.verdict}`, { ...plan, relays: forwarders(plan) }, "chosen"],
      ]),
      element("div", { class: "stack" }, bottleneck(plan), advice(plan), commands),
      panel("arrivals", "When each has everything", sortable("Destinations", [
        words("Destination", "region"), number("After", "duration_s", duration),
      ], destinations, { order: 1 })),
      frontierTable(plan.frontier, [number("Trees", "trees"), words("Forwarded by", ({ relays }) => relays.join(", ") || "–")]),
      mapPanel(plan.trees.length > 1 ? "The trees on the map" : "The tree on the map", onMap(plan, regions.filter((region) => region.in_graph))),
      treesOf(plan), basis(plan),
    ],
  };
}
