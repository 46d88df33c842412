// The round trip against what light needs, and whether a relay is worth it.

import { get } from "../shared/api.js";
import { band } from "../shared/band.js";
import { element, replace } from "../shared/dom.js";
import { figure, gbps, mbps, ms, times } from "../shared/format.js";

export function lightPanel({ link, light }, { wide }) {
  const section = (...children) => element("section", { class: wide ? "panel wide" : "panel", id: "light" }, element("h3", {}, "Round trip against light"), children);
  if (!light) return section(element("p", {}, "The place of a region is not known: give it coordinates in a catalogue file."));
  const found = link.rtt_ms.source === "baseline" ? "The model says" : link.rtt_ms.source === "inferred" ? "Inferred" : "Measured";
  const rows = [["Light, vacuum", light.vacuum_ms], ["Light, fibre", light.fibre_ms], ["Round trip", link.rtt_ms.expected]];
  const most = Math.max(...rows.map(([, value]) => value));
  const drawing = element("table", {}, element("caption", {}, "There and back, ms"), element("tbody", {}, rows.map(([name, value]) =>
    element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, band({ low: 0, expected: value, high: value }, most, `${name}: ${ms(value)}`, { width: 260 })),
      element("td", { class: "number" }, ms(value))))));
  return section(drawing, element("p", {}, lightWords(light, link.rtt_ms.expected, found)));
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
  const ask = (connections) => get("v1/plans", { ...pair, connections, vms: 1, objective: "time" }, { signal });
  Promise.all([ask(1), ask(64)]).then(([one, many]) => {
    replace(lines, line("One flow", one, mbpsOf, pair, 1), line("64 flows", many, gbps, pair, 64));
  }).catch((error) => {
    if (error.name !== "AbortError") replace(lines, element("p", { class: "muted" }, `No plan: ${error.message}`));
  });
  return element("section", { class: "panel", id: "relay" }, element("h3", {}, "Best relay for one VM a region, if time is all that counts"), lines);
}

const mbpsOf = (value) => mbps(value * 1000);

function line(name, plan, shown, pair, connections) {
  const { direct, best_relay: relay } = plan;
  const query = new URLSearchParams({ ...pair, connections, vms: 1, objective: "time" });
  const verdict = plan.verdict === "direct" ? "stay direct" : plan.verdict === "split" ? "split over several paths" : "use a relay";
  const begin = direct?.feasible ? `direct ${shown(direct.throughput_gbps)}` : "no direct path now";
  const through = relay ? [`; best through `, element("strong", {}, relay.relay), ` ${shown(relay.throughput_gbps)}`,
    relay.gain ? ` (${times(relay.gain)}, at least ${times(relay.gain_low)}; ${times(relay.cost_ratio)} the cost)` : ""] : ["; no relay does better"];
  return element("div", { class: "relay-line" },
    element("p", {}, element("strong", {}, `${name}: `), begin, through, ". ",
      element("a", { href: `./?${query}` }, `Verdict: ${verdict}`, element("span", { class: "hidden-text" }, ` (plan with ${name})`)), "."),
    element("p", { class: "muted" }, plan.reason));
}
