// Two matrices as one: what has changed since another snapshot, or how differently pairs rank by two
// figures. More is better in both, so that colours mean what they mean elsewhere.

import { METRICS } from "../shared/metrics.js";

const SAME_PCT = 5; // changes below this are called none

// Positions of the regions of one matrix in another; undefined where it has not got them.
function positions(matrix, other) {
  const at = new Map(other.regions.map((region, place) => [region, place]));
  return matrix.regions.map((region) => at.get(region));
}

function combined(matrix, other, metric, combine, said) {
  const there = positions(matrix, other);
  const value = (src, dst) => (there[src] === undefined || there[dst] === undefined ? null : other.values[there[src]][there[dst]]);
  return {
    ...matrix, sources: null, metric,
    values: matrix.values.map((row, src) => row.map((one, dst) => {
      const two = one === null ? null : value(src, dst);
      return one === null || two === null ? null : combine(one, two);
    })),
    said: (src, dst) => (matrix.values[src][dst] === null ? "" : said(matrix.values[src][dst], value(src, dst))),
  };
}

// By how many percent each figure has risen or fallen.
export function changed(metric, now, then) {
  const { shown, isLess } = METRICS[metric];
  const change = (one, two) => (two === 0 ? (one === 0 ? 0 : Infinity) : 100 * (one / two - 1));
  return combined(now, then, isLess ? "change-less" : "change", change, (one, two) => (two === null ? "" : `${shown(two)} → ${shown(one)}`));
}

// By how many percentiles of all pairs each one is better by the first figure than by the second.
export function ranked(metric, matrix, otherMetric, other) {
  const [rank, otherRank] = [ranks(metric, matrix), ranks(otherMetric, other)];
  const text = (name, value) => `${METRICS[name].title} ${METRICS[name].shown(value)}, better than ${Math.round(name === metric ? rank(value) : otherRank(value))} %`;
  return combined(matrix, other, "rank", (one, two) => rank(one) - otherRank(two),
    (one, two) => (two === null ? "" : `${text(metric, one)}; ${text(otherMetric, two)}`));
}

// From a figure to the percentage of pairs that are worse; of those that are equal, half count.
function ranks(metric, { values }) {
  const sorted = Float64Array.from(values.flat().filter((value) => value !== null)).sort();
  const below = (value, orEqual) => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] < value || (orEqual && sorted[middle] === value)) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return (value) => {
    const share = (50 * (below(value, false) + below(value, true))) / sorted.length;
    return METRICS[metric].isLess ? 100 - share : share;
  };
}

export function comparedSentence({ metric, values }) {
  const known = values.flat().filter((value) => value !== null);
  if (!known.length) return "No pair has both figures.";
  const sign = METRICS[metric].isLess ? -1 : 1;
  const share = (is) => `${Math.round((100 * known.filter(is).length) / known.length)} %`;
  const [better, worse] = [(value) => sign * value >= SAME_PCT, (value) => sign * value <= -SAME_PCT];
  return metric === "rank"
    ? `Of ${known.length.toLocaleString("en-US")} pairs, ${share((value) => Math.abs(value) < 25)} rank within 25 percentiles of each other by both figures.`
    : `Of ${known.length.toLocaleString("en-US")} pairs, ${share(better)} are better by ${SAME_PCT} % or more, and ${share(worse)} are worse.`;
}
