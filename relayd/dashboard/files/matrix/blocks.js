// The matrix summed up: by pair of providers, and in a sentence.

import { element, number, sortable, words } from "../shared/dom.js";
import { count, figure, UNKNOWN } from "../shared/format.js";
import { decimals, METRICS } from "../shared/metrics.js";
import { providerOf, providerTitle } from "./order.js";
import { quantile } from "../shared/quantiles.js";

export const LEAST_GAIN = 1.2; // what a relay must bring to be worth a second look

const LEAST_PAIRS = 6; // for percentiles to mean something
const MOST_EVEN = 1.5; // a spread that people would call even

// [{ src, dst, values, measured }] for each ordered pair of providers; values rise.
const made = new WeakMap();
export function blocksOf(matrix) {
  if (made.has(matrix)) return made.get(matrix);
  const blocks = {};
  const providers = matrix.regions.map(providerOf);
  matrix.values.forEach((row, at) => row.forEach((value, to) => {
    if (value === null) return;
    const [src, dst] = [providers[at], providers[to]];
    const block = blocks[`${src} ${dst}`] ??= { src, dst, values: [], measured: 0 };
    block.values.push(value);
    block.measured += Number(matrix.sources?.[at][to] === "measured");
  }));
  made.set(matrix, Object.values(blocks).map((block) => ({ ...block, values: Float64Array.from(block.values).sort() })));
  return made.get(matrix);
}

// How far apart the tenth and the ninetieth percentile are, as a ratio.
export const spread = (values) => quantile(values, 0.9) / quantile(values, 0.1);
const share = (part, whole) => `${Math.round((100 * part) / whole)} %`;
const listed = (parts) => (parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`);
const gains = (values) => values.filter((value) => value >= LEAST_GAIN).length;
const together = (blocks) => Float64Array.from(blocks.flatMap((block) => [...block.values])).sort();

// matrices: those at hand, by metric.
export function sentence(metric, matrices) {
  const both = ["per-flow", "aggregate"].map((name) => matrices[name]);
  if (both.includes(matrices[metric]) && both.every(Boolean)) return ofThroughput(...both);
  if (!matrices[metric]) return "";
  const blocks = blocksOf(matrices[metric]);
  const whole = together(blocks);
  if (!whole.length) return `Nothing is known yet: no pair has a sample of ${metric === "loss" ? "packet loss" : "its own"}.`;
  if (metric === "relay-gain") return ofGains(blocks, whole);
  const { shown, title } = METRICS[metric];
  const [low, middle, high] = [0.1, 0.5, 0.9].map((part) => shown(quantile(whole, part)));
  return `${title} is ${middle} in the median of ${whole.length.toLocaleString("en-US")} pairs; four in five lie between ${low} and ${high}.`;
}

// One connection beside many, within each provider.
function ofThroughput(one, many) {
  const within = (matrix) => new Map(blocksOf(matrix).filter((block) => block.src === block.dst && block.values.length >= LEAST_PAIRS)
    .map((block) => [block.src, spread(block.values)]));
  const [flows, rates] = [within(one), within(many)];
  const providers = [...flows.keys()].filter((name) => rates.has(name));
  if (!providers.length) return "";
  const parts = providers.map((name) =>
    `${providerTitle(name)} to ${providerTitle(name)}: per-flow varies ${figure(flows.get(name))}×, aggregate ${figure(rates.get(name))}×`);
  const even = providers.filter((name) => rates.get(name) <= MOST_EVEN && flows.get(name) > 2 * rates.get(name)).map(providerTitle);
  const why = even.length
    ? ` Within ${listed(even)}, one flow is slow over long distances, and many flows together reach the VM's cap.` : "";
  return `${parts.join("; ")} (90th over 10th percentile of pairs).${why}`;
}

function ofGains(blocks, whole) {
  const most = blocks.map((block) => ({ ...block, part: gains(block.values) / block.values.length }))
    .sort((a, b) => b.part - a.part).slice(0, 2)
    .map((block) => `${share(block.part, 1)} of those from ${providerTitle(block.src)} to ${providerTitle(block.dst)}`);
  return `A relay brings ${LEAST_GAIN}× or more for ${share(gains(whole), whole.length)} of all pairs: ${listed(most)}.`;
}

export function blocksTable(matrix) {
  const { metric } = matrix;
  const { shown, title, unit } = METRICS[metric];
  const blocks = blocksOf(matrix);
  const places = decimals(blocks.map((block) => quantile(block.values, 0.9)), 4);
  const text = (value) => (metric === "age" ? shown(value) : value.toFixed(places));
  const ratio = (value) => (Number.isFinite(value) ? `${value.toFixed(2)}×` : UNKNOWN);
  const at = (name, part) => number(name, ({ values }) => quantile(values, part), text, unit);
  const columns = [
    words("From", ({ src }) => providerTitle(src)), words("To", ({ dst }) => providerTitle(dst)),
    number("Pairs", "values.length", count), matrix.sources && number("Measured", ({ measured, values }) => measured / values.length, (part) => share(part, 1)),
    at("10th percentile", 0.1), at("Median", 0.5), at("90th percentile", 0.9), number("90th / 10th", ({ values }) => spread(values), ratio),
    metric === "relay-gain" && number(`${LEAST_GAIN}× or more`, ({ values }) => gains(values) / values.length, (part) => share(part, 1)),
  ].filter(Boolean);
  return element("section", { "aria-labelledby": "blocks-title" }, element("h2", { id: "blocks-title" }, `${title} by pair of providers`),
    sortable(`${title} from provider to provider`, columns, blocks));
}
