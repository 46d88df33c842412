// The figures that a matrix can show: what they mean, how they read, and which class each falls in.

import { UNKNOWN, aged, figure, gbps, mbps, ms, perGb, percent, quantile, times } from "./kit.js";

const LEVELS = 9;

// shown: with unit; bare: a limit without it. best: what the better end of the figure is called; isLess says that
// less is better. none: what a pair without a figure is. isEven: like colours mean like figures.
export const METRICS = {
  "per-flow": { title: "Per-flow", unit: "Mbit/s", shown: mbps, best: "faster", isEven: true,
    meaning: "Steady throughput of one TCP connection" },
  aggregate: { title: "Aggregate", unit: "Gbit/s", shown: gbps, best: "faster", isEven: true,
    meaning: "Throughput of one pair of VMs with enough connections" },
  rtt: { title: "RTT", unit: "ms", shown: ms, best: "nearer", isLess: true, meaning: "Round-trip time" },
  fee: { title: "Egress $", unit: "USD/GB", shown: perGb, best: "cheaper", isLess: true,
    meaning: "Price of egress in the first tier" },
  loss: { title: "Loss", unit: "%", shown: percent, best: "cleaner", isLess: true, meaning: "Packets lost" },
  "relay-gain": { title: "Relay gain", unit: "× direct", shown: times, best: "larger",
    meaning: "Throughput through the best relay over the direct path, one VM a region" },
  age: { title: "Age", unit: "", shown: aged, bare: aged, best: "fresher", isLess: true, none: "never measured",
    meaning: "Time since the newest sample of the pair" },
};

// How many decimals figures of one column need, so that the greatest shows so many digits.
export function decimals(values, digits) {
  const greatest = Math.max(0, ...values.filter(Number.isFinite));
  return greatest ? Math.max(0, Math.min(3, digits - 1 - Math.floor(Math.log10(greatest)))) : 0;
}

// Up to nine classes, the limits between them, and their colours: { classes: [[name of a colour, text]], classOf(value) }.
// Classes of throughput are equally wide from zero, up to a last one for the fastest tenth; others, and all of areas,
// have like numbers of figures. Limits have two digits, so that no noise parts what is alike. Stronger is better for every
// figure, so that no colour means both: fast, near, cheap, clean and fresh are strong, slow, far, lossy and old are weak.
export function scaleOf(metric, values, areas) {
  const { isLess, bare = figure, isEven = false } = METRICS[metric];
  const known = Float64Array.from(values.flat().filter((value) => value !== null)).sort();
  const step = isEven && !areas && Number((quantile(known, 0.9) / LEVELS).toPrecision(1));
  const edges = Array.from({ length: known.length && LEVELS - 1 }, (_, at) =>
    Number((step ? (at + 1) * step : quantile(known, (at + 1) / LEVELS)).toPrecision(2)));
  const limits = [...new Set(edges)].filter((edge) => step || edge > known[0]);
  const text = (at) => (!limits.length ? bare(known[0]) : at === 0 ? `under ${bare(limits[0])}` : at === limits.length ? `${bare(limits[at - 1])} or more`
    : `${bare(limits[at - 1])}–${bare(limits[at])}`);
  const level = (at) => Math.round((at * (LEVELS - 1)) / Math.max(1, limits.length));
  const classes = Array.from({ length: known.length && limits.length + 1 }, (_, at) => [`l${isLess ? LEVELS - 1 - level(at) : level(at)}`, text(at)]);
  return { classes, isEven: Boolean(step), classOf: (value) => classes[limits.filter((limit) => value >= limit).length][0] };
}

// ---- what is measured, and what is believed of links and VMs ----

// By name: `of` a link's estimate, in the unit that is shown; `scale`: from a sample's unit to that;
// `caps`: of one VM; `in_gbps`: where rates share a scale; `isLess`: less is better.
const mb = (value) => (value === null ? UNKNOWN : `${figure(value)} MB`);
const plain = (unit) => (value) => `${figure(value)} ${unit}`;
export const QUANTITIES = {
  rtt_ms: { name: "Round-trip time", unit: "ms", shown: ms, of: "rtt_ms", isLess: true, zero: false },
  per_flow_mbps: { name: "Per-flow throughput", unit: "Mbit/s", shown: mbps, of: "per_flow_mbps", in_gbps: 1e-3 },
  aggregate_mbps: { name: "Aggregate throughput", unit: "Gbit/s", shown: gbps, of: "aggregate_gbps", scale: 1e-3 },
  aggregate_gbps: { name: "Aggregate throughput", unit: "Gbit/s", shown: gbps, of: "aggregate_gbps", in_gbps: 1 },
  loss_pct: { name: "Loss", unit: "%", shown: percent, of: "loss_pct", isLess: true },
  egress_cap_mbps: { name: "Egress cap", unit: "Gbit/s", scale: 1e-3, shown: gbps },
  ingress_cap_mbps: { name: "Ingress cap", unit: "Gbit/s", scale: 1e-3, shown: gbps },
  jitter_ms: { name: "Jitter", unit: "ms", shown: ms, isLess: true },
  udp_mbps: { name: "UDP", unit: "Mbit/s", shown: mbps },
  transfer_s: { name: "Transfer of a file", unit: "s", shown: plain("s"), isLess: true },
  route_hops: { name: "Hops of the route", unit: "hops", shown: plain("hops"), isLess: true },
  egress_gbps: { name: "Sender's egress cap", unit: "Gbit/s", shown: gbps, of: "egress_gbps", end: "sender", in_gbps: 1 },
  ingress_gbps: {
    name: "Receiver's ingress cap", unit: "Gbit/s", shown: gbps, of: "ingress_gbps", end: "receiver", in_gbps: 1,
  },
  window_mb: { name: "Receiver's window", unit: "MB", shown: mb, of: "window_mb", end: "receiver" },
};
export const metricOf = (name) => ({ name, unit: "", scale: 1, shown: figure, zero: true, ...QUANTITIES[name] });

// What is believed of a metric today: { low, expected, high }; null where nothing is.
export function beliefOf({ of }, link) {
  const found = link[of] ?? null;
  return typeof found === "number" ? { low: found, expected: found, high: found } : found;
}
