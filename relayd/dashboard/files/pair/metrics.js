// The metrics of a link as people know them: name, unit, and what the graph believes of each.

import { figure, gbps, mbps, ms, percent } from "../shared/format.js";

const plain = (unit) => (value) => `${figure(value)} ${unit}`;

// bounds: of the link, in the unit that is shown; scale: from the sample's unit to the one shown.
export const METRICS = {
  rtt_ms: { name: "Round-trip time", unit: "ms", scale: 1, shown: ms, bounds: (link) => link.rtt_ms, zero: false },
  per_flow_mbps: { name: "One flow", unit: "Mbit/s", scale: 1, shown: mbps, bounds: (link) => link.per_flow_mbps, zero: true },
  aggregate_mbps: { name: "Many flows together", unit: "Gbit/s", scale: 1e-3, shown: gbps, bounds: (link) => link.aggregate_gbps, zero: true },
  loss_pct: {
    name: "Loss", unit: "%", scale: 1, shown: percent, zero: true,
    bounds: (link) => (link.loss_pct === null ? null : { low: link.loss_pct, expected: link.loss_pct, high: link.loss_pct }),
  },
  egress_cap_mbps: { name: "Egress cap", unit: "Gbit/s", scale: 1e-3, shown: gbps, bounds: () => null, zero: true },
  ingress_cap_mbps: { name: "Ingress cap", unit: "Gbit/s", scale: 1e-3, shown: gbps, bounds: () => null, zero: true },
  jitter_ms: { name: "Jitter", unit: "ms", scale: 1, shown: ms, bounds: () => null, zero: true },
  udp_mbps: { name: "UDP", unit: "Mbit/s", scale: 1, shown: mbps, bounds: () => null, zero: true },
  transfer_s: { name: "Transfer of a file", unit: "s", scale: 1, shown: plain("s"), bounds: () => null, zero: true },
  route_hops: { name: "Hops of the route", unit: "hops", scale: 1, shown: plain("hops"), bounds: () => null, zero: true },
};

export const metricOf = (name) => METRICS[name] ?? { name, unit: "", scale: 1, shown: figure, bounds: () => null, zero: true };

// Metrics in the order in which people ask for them; those that are not listed come last.
export const inOrder = (seen) => {
  const order = Object.keys(METRICS);
  const place = (metric) => (order.indexOf(metric) + order.length + 1) % (order.length + 1);
  return [...seen].sort((a, b) => place(a.metric) - place(b.metric));
};

// After so many connections the pair carries no more; null where nothing is carried.
export function saturating(link) {
  const flow = link.per_flow_mbps.expected;
  const most = link.aggregate_gbps.expected * 1000;
  return flow > 0 && most > 0 ? Math.max(1, Math.ceil(most / flow - 1e-9)) : null;
}
