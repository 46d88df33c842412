// A broadcast: over which trees a volume reaches its destinations.

import { element, sortable } from "../shared/dom.js";
import { duration, figure, percent, perGb, rate, volume } from "../shared/format.js";
import { pairLink } from "../shared/pairs.js";
import { advice, basis, bottleneck, costOf, frontierTable, panel, sideBySide, throughputOf, timeOf, vmsOf, widePanel } from "./parts.js";
import { verdictPanel } from "./verdict.js";
import { places } from "../shared/places.js";
import { mapPanel } from "../world/map.js";

export function spoken({ verdict, trees }) {
  if (verdict === "direct") return "Send each copy direct";
  return verdict === "tree" ? "Forward copies over one tree" : `Forward copies over ${trees.length} trees at once`;
}

// Relays and destinations that send on what they receive.
const forwarders = ({ trees: found, request }) => [...new Set(found.flatMap((tree) => tree.legs.map((link) => link.src)))].filter((region) => region !== request.src);

// A tree as nested lists, from the source outwards.
function branches(tree, region) {
  const links = tree.legs.filter((link) => link.src === region);
  return links.length > 0 && element("ul", {}, links.map((link) => element("li", {}, pairLink(link.src, link.dst), branches(tree, link.dst))));
}

function trees(plan) {
  const links = plan.trees.flatMap((tree, at) => tree.legs.map((link) => ({ ...link, tree: at + 1 })));
  return widePanel("trees", plan.trees.length > 1 ? "Trees" : "Tree",
    element("div", { class: "grid" }, plan.trees.map((tree, at) => element("div", { class: "tree" },
      element("h3", {}, `Tree ${at + 1}: ${percent(100 * tree.share)} of the volume at ${rate(tree.throughput_gbps)} Gbit/s`), branches(tree, plan.request.src)))),
    sortable("Every link of every tree", [
      { title: "Tree", number: true, value: (link) => link.tree },
      { title: "Link", value: (link) => `${link.src} ${link.dst}`, shown: (link) => pairLink(link.src, link.dst) },
      { title: "Throughput", unit: "Gbit/s", number: true, value: (link) => link.throughput_gbps, shown: (link) => rate(link.throughput_gbps) },
      { title: "Connections", number: true, value: (link) => link.connections, shown: (link) => figure(link.connections) },
      { title: "Egress", number: true, value: (link) => link.egress_usd_per_gb, shown: (link) => perGb(link.egress_usd_per_gb) },
    ], links));
}

// Links that several trees use are one line.
function onMap(plan, regions) {
  const lines = new Map();
  for (const link of plan.trees.flatMap((tree) => tree.legs)) {
    const name = `${link.src} ${link.dst}`;
    const gbps = (lines.get(name)?.thickness ?? 0) + link.throughput_gbps;
    lines.set(name, {
      src: link.src, dst: link.dst, thickness: gbps, values: { aggregate: gbps, fee: link.egress_usd_per_gb }, kind: "chosen",
      said: `${link.src} to ${link.dst}: ${rate(gbps)} Gbit/s, ${perGb(link.egress_usd_per_gb)}`,
    });
  }
  const ends = [plan.request.src, ...plan.destinations.map(({ region }) => region)];
  return {
    regions, lines: [...lines.values()], kindTitle: "Link", said: (region) => [region.id, region.city].filter(Boolean).join(", "),
    marked: [...new Set([...ends, ...[...lines.values()].flatMap((line) => [line.src, line.dst])])],
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
      headline: [
        throughputOf(plan),
        timeOf(plan), costOf(plan), vmsOf(plan),
      ],
    }),
    body: [
      sideBySide([
        ["Each copy direct", plan.direct, "direct"], ["All through one region", plan.best_relay, "relay"],
        ["Best forwarding", plan.optimum, "relay"], [`Chosen: ${plan.verdict}`, { ...plan, relays: forwarders(plan) }, "chosen"],
      ]),
      element("div", { class: "stack" }, bottleneck(plan), advice(plan), commands),
      mapPanel(plan.trees.length > 1 ? "The trees on the map" : "The tree on the map", onMap(plan, regions.filter((region) => region.in_graph))), trees(plan),
      panel("arrivals", "When each has everything", sortable("Destinations", [
        { title: "Destination", value: ({ region }) => region },
        { title: "After", number: true, value: (each) => each.duration_s, shown: (each) => duration(each.duration_s) },
      ], destinations, { order: 1 })),
      frontierTable(plan.frontier, [
        { title: "Trees", number: true, value: (point) => point.trees }, { title: "Forwarded by", value: (point) => point.relays.join(", ") || "–" },
      ]), basis(plan),
    ],
  };
}
