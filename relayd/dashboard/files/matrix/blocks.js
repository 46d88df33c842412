// The matrix summed up: by pair of providers, and in a sentence.

import { element, sortable } from "../shared/dom.js";
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
  if (!made.has(matrix)) made.set(matrix, newBlocksOf(matrix));
  return made.get(matrix);
}

function newBlocksOf(matrix) {
  const blocks = new Map();
  const providers = matrix.regions.map(providerOf);
  providers.forEach((from, src) => providers.forEach((to, dst) => {
    const value = matrix.values[src][dst];
    if (value === null) return;
    const key = `${from} ${to}`;
    let block = blocks.get(key);
    if (!block) blocks.set(key, block = { src: from, dst: to, values: [], measured: 0 });
    block.values.push(value);
    if (matrix.sources?.[src][dst] === "measured") block.measured += 1;
  }));
  return [...blocks.values()].map((block) => ({ ...block, values: Float64Array.from(block.values).sort() }));
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
  const column = (name, value, written, of = "") => ({ title: name, unit: of, number: true, value, shown: (block) => written(value(block)) });
  const columns = [
    { title: "From", value: (block) => providerTitle(block.src) },
    { title: "To", value: (block) => providerTitle(block.dst) },
    { title: "Pairs", number: true, value: (block) => block.values.length, shown: (block) => count(block.values.length) },
    matrix.sources && column("Measured", (block) => block.measured / block.values.length, (part) => share(part, 1)),
    column("10th percentile", (block) => quantile(block.values, 0.1), text, unit),
    column("Median", (block) => quantile(block.values, 0.5), text, unit),
    column("90th percentile", (block) => quantile(block.values, 0.9), text, unit),
    column("90th / 10th", (block) => spread(block.values), ratio),
    metric === "relay-gain" && column(`${LEAST_GAIN}× or more`, (block) => gains(block.values) / block.values.length, (part) => share(part, 1)),
  ].filter(Boolean);
  return element("section", { "aria-labelledby": "blocks-title" }, element("h2", { id: "blocks-title" }, `${title} by pair of providers`),
    sortable(`${title} from provider to provider`, columns, blocks));
}
