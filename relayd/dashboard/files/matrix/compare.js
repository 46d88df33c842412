// Two matrices as one: how differently pairs rank by two figures.

import { METRICS } from "../shared/metrics.js";

// Positions of the regions of one matrix in another; undefined where it has not got them.
function positions(matrix, other) {
  const at = new Map(other.regions.map((region, place) => [region, place]));
  return matrix.regions.map((region) => at.get(region));
}

// By how many percentiles of all pairs each one is better by the first figure than by the second.
export function ranked(metric, matrix, otherMetric, other) {
  const [rank, otherRank] = [ranks(metric, matrix), ranks(otherMetric, other)];
  const text = (name, value) => `${METRICS[name].title} ${METRICS[name].shown(value)}, better than ${Math.round(name === metric ? rank(value) : otherRank(value))} %`;
  const there = positions(matrix, other);
  const value = (src, dst) => (there[src] === undefined || there[dst] === undefined ? null : other.values[there[src]][there[dst]]);
  return {
    ...matrix, sources: null, metric: "rank",
    values: matrix.values.map((row, src) => row.map((one, dst) => {
      const two = one === null ? null : value(src, dst);
      return one === null || two === null ? null : rank(one) - otherRank(two);
    })),
    said: (src, dst) => {
      const [one, two] = [matrix.values[src][dst], value(src, dst)];
      return one === null || two === null ? "" : `${text(metric, one)}; ${text(otherMetric, two)}`;
    },
  };
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

export function comparedSentence({ values }) {
  const known = values.flat().filter((value) => value !== null);
  if (!known.length) return "No pair has both figures.";
  const alike = Math.round((100 * known.filter((value) => Math.abs(value) < 25).length) / known.length);
  return `Of ${known.length.toLocaleString("en-US")} pairs, ${alike} % rank within 25 percentiles of each other by both figures.`;
}
