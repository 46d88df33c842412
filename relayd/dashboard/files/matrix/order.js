// Which rows and columns are shown, and in which order: in groups, and within a group by name, by
// their figures, or so that neighbours are alike. Regions are positions in the matrix; a group is
// { title, members }.

import { level } from "../shared/metrics.js";
import { median } from "../shared/quantiles.js";

const byName = new Intl.Collator("en", { numeric: true }).compare;
const CONTINENTS = {
  AF: "Africa", AS: "Asia", EU: "Europe", ME: "Middle East", NAM: "North America", OC: "Oceania", SAM: "South America",
};
export const COUNTRY = "country:"; // before a country in a filter; providers stand as they are
export const MOST_SIMILAR = 320; // regions that can be sorted by likeness: the work grows with their cube
export const GROUPS = { provider: "provider", continent: "continent", none: "none" };
export const SORTS = { name: "name", median: "median", similar: "similarity" };

export const providerOf = (id) => id.slice(0, id.indexOf(":"));
export const providerTitle = (name) => (name.length <= 3 ? name.toUpperCase() : name[0].toUpperCase() + name.slice(1));
export const members = (groups) => groups.flatMap((group) => group.members);

function ordered(matrix, scale, facts, { group, sort }) {
  const { regions, values } = matrix;
  const continent = (id) => facts.get(id)?.continent;
  const titles = regions.map((id) => (group === "provider" ? providerTitle(providerOf(id))
    : group === "none" ? "" : CONTINENTS[continent(id)] ?? continent(id) ?? "Elsewhere"));
  const middle = (at) => median(values[at].filter((value) => value !== null)) ?? -Infinity;
  const arrange = {
    name: (found) => found.sort((a, b) => byName(regions[a], regions[b])),
    median: (found) => found.map((at) => [middle(at), at]).sort(([x, a], [y, b]) => y - x || a - b).map(([, at]) => at),
    similar: (found) => (regions.length > MOST_SIMILAR ? found : chain(values, scale, found)),
  }[sort];
  return [...new Set(titles)].sort(byName)
    .map((title) => ({ title, members: arrange([...regions.keys()].filter((at) => titles[at] === title)) }));
}

// A nearest-neighbour chain: from the region that is least like the others, always on to the one
// most like the last. Two regions are alike if what leaves and what reaches them falls into like
// classes; figures would let a few very fast pairs decide.
function chain(values, scale, found) {
  if (found.length < 3) return found;
  const classOf = (value) => (value === null ? NaN : level(scale.limits, value));
  const vectors = new Map(found.map((at) => [at, Float32Array.from([...values[at], ...values.map((row) => row[at])], classOf)]));
  const distance = (a, b) => {
    const [x, y] = [vectors.get(a), vectors.get(b)];
    let [sum, shared] = [0, 0];
    for (let at = 0; at < x.length; at += 1) {
      const apart = Math.abs(x[at] - y[at]);
      if (apart >= 0) { // not NaN
        sum += apart;
        shared += 1;
      }
    }
    return shared ? sum / shared : Infinity;
  };
  const least = (among, of) => among.reduce((best, at) => (best === null || of(at) < of(best) ? at : best), null);
  const strangeness = new Map(found.map((at) => [at, found.reduce((sum, other) => sum + (at === other ? 0 : distance(at, other)), 0)]));
  const left = new Set(found);
  const chained = [];
  for (let last = least(found, (at) => -strangeness.get(at)); last !== null;) {
    chained.push(last);
    left.delete(last);
    const apart = new Map([...left].map((at) => [at, distance(last, at)]));
    last = least([...left], (at) => apart.get(at));
  }
  return chained;
}

// ---- of these, what is shown ----

function accepts(facts, filter, text) {
  const wanted = text.trim().toLowerCase();
  return (id) => {
    const { country, city } = facts.get(id) ?? {};
    if (filter.startsWith(COUNTRY) ? country !== filter.slice(COUNTRY.length) : filter && providerOf(id) !== filter) return false;
    return !wanted || [id, city, country].some((each) => each?.toLowerCase().includes(wanted));
  };
}

const kept = (groups, is) => groups.map((group) => ({ ...group, members: group.members.filter(is) })).filter((group) => group.members.length);

// "a..b": from one region to another, in the order in which they stand. All, where one is not there.
function between(groups, regions, range) {
  const order = members(groups);
  const [first, last] = range.split("..").map((id) => order.findIndex((at) => regions[at] === id));
  if (!(first >= 0 && last >= first)) return groups;
  const inside = new Set(order.slice(first, last + 1));
  return kept(groups, (at) => inside.has(at));
}
export const rangeOf = (regions, part) => `${regions[part[0]]}..${regions[part.at(-1)]}`;

// Returns { rows, columns } as groups, `all` as their numbers before zooming, `empty`: how many were left
// out because they have no figure, and isTruncated: a table of more than `most` is too large to draw, and to read.
export function selected(matrix, scale, facts, state, most) {
  const { regions, values, isWanted = (src, dst) => values[src][dst] !== null } = matrix;
  const groups = ordered(matrix, scale, facts, state);
  const found = [["from", "src"], ["to", "dst"]].map(([filter, text]) => {
    const is = accepts(facts, state[filter], state[text]);
    return kept(groups, (at) => is(regions[at]));
  });
  const [sources, targets] = found.map(members);
  const isFilled = [(src) => targets.some((dst) => isWanted(src, dst)), (dst) => sources.some((src) => isWanted(src, dst))];
  const filled = state.empty ? found : found.map((each, at) => kept(each, isFilled[at]));
  const all = filled.map((each) => members(each).length);
  const zoomed = filled.map((each, at) => between(each, regions, [state.rows, state.columns][at]));
  const [rows, columns] = zoomed.map((each) => {
    const first = new Set(members(each).slice(0, most));
    return kept(each, (at) => first.has(at));
  });
  return {
    rows, columns, all, empty: [sources.length - all[0], targets.length - all[1]],
    isTruncated: zoomed.some((each) => members(each).length > most),
  };
}
