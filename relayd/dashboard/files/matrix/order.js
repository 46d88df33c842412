// Which rows and columns are shown, and in which order: in groups, and within a group by name or by their
// figures. Regions are positions in the matrix; a group is { title, members }.

import { providerOf, quantile } from "../shared/kit.js";

const byName = new Intl.Collator("en", { numeric: true }).compare;
const CONTINENTS = {
  AF: "Africa", AS: "Asia", EU: "Europe", ME: "Middle East", NAM: "North America", OC: "Oceania", SAM: "South America",
};
export const COUNTRY = "country:"; // before a country in a filter; providers stand as they are
export const GROUPS = { provider: "provider", continent: "continent", none: "none" };
export const SORTS = { name: "name", median: "median" };

export const providerTitle = (name) => (name.length <= 3 ? name.toUpperCase() : name[0].toUpperCase() + name.slice(1));
export const members = (groups) => groups.flatMap((group) => group.members);
export const median = (values) => quantile(values.filter((value) => value !== null), 0.5);

const continentOf = (facts) => (id) => CONTINENTS[facts.get(id)?.continent] ?? facts.get(id)?.continent ?? "Elsewhere";
// Regions at no known place are told apart by their providers.
const areaOf = (facts) => (id) => (facts.get(id)?.continent ? continentOf(facts)(id) : `${providerTitle(providerOf(id))}, elsewhere`);

// The matrix of areas, in place of more regions than can be read: an area's figures are medians of its pairs' until it is
// opened to its regions. `areas`: how many regions each closed one stands for.
export function byArea(matrix, facts, opened) {
  const { regions, values, sources, isWanted } = matrix;
  const areas = Map.groupBy(regions.keys(), (at) => areaOf(facts)(regions[at]));
  const units = [...areas].sort(([a], [b]) => byName(a, b)).flatMap(([area, all]) =>
    (opened.has(area) ? all.map((at) => [regions[at], [at]]) : [[area, all]]));
  const pairs = (rows, columns, get) => rows.flatMap((src) => columns.filter((dst) => dst !== src).map((dst) => get(src, dst)));
  const among = (get) => units.map(([, rows]) => units.map(([, columns]) => get(rows, columns)));
  const surest = (found) => ["measured", "inferred", "baseline"].find((kind) => found.includes(kind)) ?? null;
  const wanted = isWanted && among((rows, columns) => pairs(rows, columns, isWanted).some(Boolean));
  return {
    ...matrix, regions: units.map(([name]) => name), areas: new Map([...areas].map(([area, all]) => [area, all.length])),
    values: among((rows, columns) => median(pairs(rows, columns, (src, dst) => values[src][dst]))),
    sources: sources && among((rows, columns) => surest(pairs(rows, columns, (src, dst) => sources[src][dst]))),
    isWanted: wanted && ((src, dst) => wanted[src][dst]),
  };
}

function ordered({ regions, values, areas }, facts, { group, sort }) {
  const titleOf = areas ? (id) => (areas.has(id) ? id : areaOf(facts)(id)) : {
    provider: (id) => providerTitle(providerOf(id)), none: () => "", continent: continentOf(facts),
  }[group];
  const titles = regions.map(titleOf);
  const middles = values.map((row) => (sort === "median" ? median(row) ?? -Infinity : 0));
  const before = (a, b) => middles[b] - middles[a] || byName(regions[a], regions[b]);
  return [...new Set(titles)].sort(byName).map((title) =>
    ({ title, members: [...regions.keys()].filter((at) => titles[at] === title).sort(before) }));
}

// ---- of these, what is shown ----

function accepts(facts, filter, text) {
  const wanted = text.trim().toLowerCase();
  return (id) => {
    const { country, city } = facts.get(id) ?? {};
    return (!filter || [providerOf(id), `${COUNTRY}${country}`].includes(filter))
      && (!wanted || [id, city, country].some((each) => each?.toLowerCase().includes(wanted)));
  };
}

const kept = (groups, is) => groups.map((group) => ({ ...group, members: group.members.filter(is) }))
  .filter((group) => group.members.length);

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
export function selected(matrix, facts, state, most) {
  const { regions, values, isWanted = (src, dst) => values[src][dst] !== null } = matrix;
  const groups = ordered(matrix, facts, state);
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
