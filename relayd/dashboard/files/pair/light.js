// The round trip against what light needs, and whether a relay is worth it.

import { get } from "../shared/api.js";
import { band } from "../shared/band.js";
import { element, replace, table } from "../shared/dom.js";
import { figure, gbps, mbps, ms, times } from "../shared/format.js";
import { panel } from "../shared/parts.js";

export function lightPanel({ link, light }) {
  const section = (...children) => panel("light", "Round trip against light", children);
  if (!light) return section(element("p", {}, "The place of a region is not known: give it coordinates in a catalogue file."));
  const rows = [["Light, vacuum", light.vacuum_ms], ["Light, fibre", light.fibre_ms], ["Round trip", link.rtt_ms.expected]];
  const most = Math.max(...rows.map(([, value]) => value));
  const found = { baseline: "The model says", inferred: "Inferred" }[link.rtt_ms.source] ?? "Measured";
  return section(
    table("light", "There and back", [[""], [""], ["ms", "number"]], rows.map(([name, value]) =>
      [name, band({ low: 0, expected: value, high: value }, most, `${name}: ${ms(value)}`, { width: 200 }), figure(value)])),
    element("p", {}, lightWords(light, link.rtt_ms.expected, found)));
}

function lightWords(light, rtt, found) {
  if (light.stretch === null || light.distance_km < 1) return `Both regions are at one place; ${found.toLowerCase()}: ${ms(rtt)}.`;
  const apart = `The regions are ${figure(light.distance_km)} km apart along the globe: light needs ${ms(light.vacuum_ms)} there and back, ${ms(light.fibre_ms)} in a straight fibre.`;
  if (!light.possible) return `${apart} ${found} ${ms(rtt)}, which is impossible: a place in the catalogue or a measurement is wrong.`;
  const rest = light.stretch >= 1
    ? `${light.stretch.toFixed(2)} times the fibre; the ${ms(rtt - light.fibre_ms)} beyond it are cables that take longer routes, equipment and queues.`
    : "less than the fibre would take: the regions are nearer to each other than the places given for them.";
  return `${apart} ${found}: ${ms(rtt)}, ${rest}`;
}

// One line for a single flow, one for many: the planner's word on this pair.
export function relayPanel(pair, signal) {
  const lines = element("div", { "aria-live": "polite" }, element("p", { class: "muted" }, "Asking the planner …"));
  // One VM a region, as all figures of this page: more of them multiply direct and relayed alike.
  const asked = (connections) => ({ ...pair, connections, vms: 1, objective: "time" });
  const ask = (connections) => get("v1/plans", asked(connections), { signal });
  Promise.all([ask(1), ask(64)]).then(([one, many]) => {
    replace(lines, line("One flow", one, (value) => mbps(value * 1000), asked(1)), line("64 flows", many, gbps, asked(64)));
  }).catch((error) => {
    if (error.name !== "AbortError") replace(lines, element("p", { class: "muted" }, `No plan: ${error.message}`));
  });
  return panel("relay", "Best relay for one VM a region, if time is all that counts", lines);
}

const VERDICTS = { direct: "stay direct", split: "split over several paths", relay: "use a relay" };

function line(name, { direct, best_relay: relay, verdict, reason }, shown, asked) {
  const begin = direct?.feasible ? `direct ${shown(direct.throughput_gbps)}` : "no direct path now";
  const through = relay ? ["; best through ", element("strong", {}, relay.relay), ` ${shown(relay.throughput_gbps)}`,
    relay.gain ? ` (${times(relay.gain)}, at least ${times(relay.gain_low)}; ${times(relay.cost_ratio)} the cost)` : ""] : ["; no relay does better"];
  return element("div", { class: "relay-line" },
    element("p", {}, element("strong", {}, `${name}: `), begin, through, ". ",
      element("a", { href: `./?${new URLSearchParams(asked)}` }, `Verdict: ${VERDICTS[verdict]}`,
        element("span", { class: "hidden-text" }, ` (plan with ${name})`)), "."),
    element("p", { class: "muted" }, reason));
}
