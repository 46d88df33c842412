// One small map: regions, links in trouble, and the relays of the table.

import { element, replace } from "../shared/dom.js";
import { redraw } from "../shared/parts.js";
import { WorldMap } from "../world/map.js";

let map = null;

export async function showMap(part, regions, relays, states) {
  if (!map) {
    map = new WorldMap({ isSmall: true });
    replace(part, element("h2", {}, "Where"), map.part, element("p", {}, element("a", { href: "map" }, "The map of a region")));
  }
  let shown = null;
  redraw(part, [regions.length, relays, states], () => {
    const known = regions.filter((region) => region.in_graph);
    const number = (condition) => states.filter((state) => state.condition === condition).length;
    const through = relays.flatMap(({ src, relay, dst, gain, relay_gbps: thickness }) => [[src, relay], [relay, dst]].map(([from, to]) => ({
      src: from, dst: to, thickness, values: { "relay-gain": gain }, kind: "relayed paths of the table", said: `${src} to ${dst} through ${relay}`,
    })));
    const most = Math.max(0, ...through.map((line) => line.thickness));
    const troubled = states.map(({ src, dst, condition }) => ({ src, dst, thickness: most / 4, values: {}, kind: condition, said: `${src} to ${dst}: ${condition}` }));
    shown = map.show({
      regions: known, lines: [...through, ...troubled], marked: [], kindTitle: "Lines",
      label: `World map: ${known.length} regions, ${relays.length} relayed paths of the table, ${number("down")} links down, ${number("degraded")} degraded`,
    });
  });
  await shown;
}
