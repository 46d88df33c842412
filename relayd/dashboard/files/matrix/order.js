// In which order regions stand: in groups, and within a group by name, by their figures, or so that
// neighbours are alike.

import { level } from "../shared/metrics.js";
import { median } from "../shared/quantiles.js";

const byName = new Intl.Collator("en", { numeric: true }).compare;
const CONTINENTS = {
  AF: "Africa", AS: "Asia", EU: "Europe", ME: "Middle East", NAM: "North America", OC: "Oceania", SAM: "South America",
};
export const MOST_SIMILAR = 320; // regions that can be sorted by likeness: the work grows with their cube
export const GROUPS = { provider: "Provider", continent: "Continent", none: "None" };
export const SORTS = { name: "Name", median: "Median", similar: "Similarity" };

export const providerOf = (id) => id.slice(0, id.indexOf(":"));
export const providerTitle = (name) => (name.length <= 3 ? name.toUpperCase() : name[0].toUpperCase() + name.slice(1));
export const continentTitle = (code) => CONTINENTS[code] ?? code ?? "Elsewhere";

// Returns [{ title, members }], members being positions in the matrix.
export function ordered(matrix, scale, facts, { group, sort }) {
  const { regions } = matrix;
  const title = {
    provider: (id) => providerTitle(providerOf(id)),
    continent: (id) => continentTitle(facts.get(id)?.continent),
    none: () => "",
  }[group];
  const groups = new Map();
  regions.forEach((id, at) => {
    const name = title(id);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(at);
  });
  const arrange = {
    name: (members) => members.sort((a, b) => byName(regions[a], regions[b])),
    median: (members) => byMedian(matrix, members),
    similar: (members) => (regions.length > MOST_SIMILAR ? members : chain(matrix, scale, members)),
  }[sort];
  return [...groups].sort(([a], [b]) => byName(a, b)).map(([name, members]) => ({ title: name, members: arrange(members) }));
}

const known = (values) => values.filter((value) => value !== null);

function byMedian(matrix, members) {
  const middle = new Map(members.map((at) => [at, median(known(matrix.values[at])) ?? -Infinity]));
  return members.sort((a, b) => middle.get(b) - middle.get(a) || a - b);
}

// A nearest-neighbour chain: from the region that is least like the others, always on to the one
// most like the last. Two regions are alike if what leaves and what reaches them falls into like
// classes; figures would let a few very fast pairs decide.
function chain(matrix, scale, members) {
  if (members.length < 3) return members;
  const count = matrix.regions.length;
  const vectors = new Map(members.map((at) => {
    const vector = new Float32Array(2 * count);
    for (let other = 0; other < count; other += 1) {
      const [out, into] = [matrix.values[at][other], matrix.values[other][at]];
      vector[other] = out === null ? NaN : level(scale.limits, out);
      vector[count + other] = into === null ? NaN : level(scale.limits, into);
    }
    return [at, vector];
  }));
  const distance = (a, b) => {
    const [x, y] = [vectors.get(a), vectors.get(b)];
    let [sum, shared] = [0, 0];
    for (let at = 0; at < x.length; at += 1) {
      const apart = x[at] - y[at];
      if (apart === apart) { // not NaN
        sum += apart < 0 ? -apart : apart;
        shared += 1;
      }
    }
    return shared ? sum / shared : Infinity;
  };
  const strangeness = members.map((at) => members.reduce((sum, other) => sum + (at === other ? 0 : distance(at, other)), 0));
  const left = new Set(members);
  let last = members[strangeness.indexOf(Math.max(...strangeness))];
  const found = [last];
  left.delete(last);
  while (left.size) {
    let [next, least] = [null, Infinity];
    for (const at of left) {
      const apart = distance(last, at);
      if (next === null || apart < least) [next, least] = [at, apart];
    }
    found.push(next);
    left.delete(next);
    last = next;
  }
  return found;
}
