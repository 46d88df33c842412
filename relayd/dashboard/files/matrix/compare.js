// Two matrices as one: how differently pairs rank by two figures.

import { METRICS } from "../shared/metrics.js";

const known = (matrix) => matrix.values.flat().filter((value) => value !== null);

// By how many percentiles of all pairs each one is better by the first figure than by the second.
export function ranked(matrix, other) {
  const there = new Map(other.regions.map((region, at) => [region, at]));
  const rank = new Map([[matrix, ranks(matrix)], [other, ranks(other)]]);
  const text = (of, value) => `${METRICS[of.metric].title} ${METRICS[of.metric].shown(value)}, better than ${Math.round(rank.get(of)(value))} %`;
  const both = (src, dst) => {
    const [from, to] = [src, dst].map((at) => there.get(matrix.regions[at]));
    const found = [matrix.values[src][dst], other.values[from]?.[to] ?? null];
    return found.includes(null) ? null : found;
  };
  return {
    ...matrix, sources: null, metric: "rank",
    values: matrix.values.map((row, src) => row.map((_, dst) => {
      const found = both(src, dst);
      return found && rank.get(matrix)(found[0]) - rank.get(other)(found[1]);
    })),
    said: (src, dst) => {
      const found = both(src, dst);
      return found && `${text(matrix, found[0])}; ${text(other, found[1])}`;
    },
  };
}

// From a figure of a matrix to the percentage of pairs that are worse; of those that are equal, half count.
function ranks(matrix) {
  const sorted = Float64Array.from(known(matrix)).sort();
  const shares = new Map();
  for (let [first, next] = [0, 0]; first < sorted.length; first = next) {
    while (sorted[next] === sorted[first]) next += 1;
    shares.set(sorted[first], (50 * (first + next)) / sorted.length);
  }
  const isLess = METRICS[matrix.metric].isLess;
  return (value) => (isLess ? 100 - shares.get(value) : shares.get(value));
}

export function comparedSentence(matrix) {
  const all = known(matrix);
  if (!all.length) return "No pair has both figures.";
  const alike = Math.round((100 * all.filter((value) => Math.abs(value) < 25).length) / all.length);
  return `Of ${all.length.toLocaleString("en-US")} pairs, ${alike} % rank within 25 percentiles of each other by both figures.`;
}
