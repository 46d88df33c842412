// The matrix summed up: by pair of providers, and in a sentence.

import { element, sortable } from "./dom.js";
import { figure } from "./format.js";
import { decimals, METRICS, quantile } from "./matrix_metrics.js";
import { providerOf, providerTitle } from "./matrix_order.js";

export const LEAST_GAIN = 1.2; // what a relay must bring to be worth a second look

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

// matrices: those at hand, by metric.
export function sentence(metric, matrices) {
  const within = (name) => (matrices[name] ? blocksOf(matrices[name]).filter((block) => block.src === block.dst && block.values.length >= 6) : []);
  if (metric === "per-flow" || metric === "aggregate") {
    const many = new Map(within("aggregate").map((block) => [block.src, spread(block.values)]));
    const parts = within("per-flow").filter((block) => many.has(block.src)).map((block) =>
      `${providerTitle(block.src)} to ${providerTitle(block.src)}: per-flow varies ${figure(spread(block.values))}×, aggregate ${figure(many.get(block.src))}×`);
    if (!parts.length) return "";
    const even = within("per-flow").filter((block) => many.get(block.src) <= MOST_EVEN && spread(block.values) > 2 * many.get(block.src)).map((block) => providerTitle(block.src));
    const why = even.length ? ` Within ${listed(even)}, one flow is slow where the way is long, and many flows together reach the VM's cap.` : "";
    return `${parts.join("; ")} (90th over 10th percentile of pairs).${why}`;
  }
  const matrix = matrices[metric];
  if (!matrix) return "";
  const blocks = blocksOf(matrix);
  if (metric === "relay-gain") {
    const gains = blocks.map((block) => ({ ...block, many: block.values.filter((value) => value >= LEAST_GAIN).length / block.values.length }))
      .sort((a, b) => b.many - a.many);
    const said = gains.slice(0, 2).map((block) => `${share(block.many, 1)} of those from ${providerTitle(block.src)} to ${providerTitle(block.dst)}`);
    const whole = blocks.flatMap((block) => [...block.values]);
    return whole.length ? `A relay brings ${LEAST_GAIN}× or more for ${share(whole.filter((value) => value >= LEAST_GAIN).length, whole.length)} of all pairs: ${listed(said)}.` : "";
  }
  const whole = Float64Array.from(blocks.flatMap((block) => [...block.values])).sort();
  if (!whole.length) return `Nothing is known yet: no pair has a sample of ${metric === "loss" ? "packet loss" : "its own"}.`;
  const { shown, title } = METRICS[metric];
  return `${title} is ${shown(quantile(whole, 0.5))} in the median of ${whole.length.toLocaleString("en-US")} pairs; four in five lie between ${shown(quantile(whole, 0.1))} and ${shown(quantile(whole, 0.9))}.`;
}

export function blocksTable(metric, matrix) {
  const { shown, title, unit } = METRICS[metric];
  const blocks = blocksOf(matrix);
  const part = (at) => (block) => quantile(block.values, at);
  const places = decimals(blocks.map(part(0.9)), 4);
  const text = (value) => (metric === "age" ? shown(value) : value.toFixed(places));
  const quantiles = [[0.1, "10th percentile"], [0.5, "Median"], [0.9, "90th percentile"]].map(([at, name]) =>
    ({ title: name, unit, number: true, value: part(at), shown: (block) => text(part(at)(block)) }));
  const columns = [
    { title: "From", value: (block) => providerTitle(block.src) },
    { title: "To", value: (block) => providerTitle(block.dst) },
    { title: "Pairs", number: true, value: (block) => block.values.length },
    matrix.sources && { title: "Measured", number: true, value: (block) => block.measured / block.values.length, shown: (block) => share(block.measured, block.values.length) },
    ...quantiles,
    { title: "90th / 10th", number: true, value: (block) => spread(block.values), shown: (block) => (Number.isFinite(spread(block.values)) ? `${spread(block.values).toFixed(2)}×` : "–") },
    metric === "relay-gain" && { title: `${LEAST_GAIN}× or more`, number: true, value: (block) => block.values.filter((value) => value >= LEAST_GAIN).length / block.values.length, shown: (block) => share(block.values.filter((value) => value >= LEAST_GAIN).length, block.values.length) },
  ].filter(Boolean);
  return element("section", { "aria-labelledby": "blocks-title" }, element("h2", { id: "blocks-title" }, `${title} by pair of providers`),
    sortable(`${title} from provider to provider`, columns, blocks));
}
