// Which rows and columns are shown: filters by provider, country and text, regions without a figure, and
// the part that was zoomed to.

import { providerOf } from "./order.js";

export const COUNTRY = "country:"; // before a country in a filter; providers stand as they are

function accepts(facts, filter, text) {
  const wanted = text.trim().toLowerCase();
  return (id) => {
    const { country, city } = facts.get(id) ?? {};
    if (filter.startsWith(COUNTRY) ? country !== filter.slice(COUNTRY.length) : filter && providerOf(id) !== filter) return false;
    return !wanted || [id, city, country].some((each) => each?.toLowerCase().includes(wanted));
  };
}

const kept = (groups, is) => groups.map((group) => ({ ...group, members: group.members.filter(is) })).filter((group) => group.members.length);
const members = (groups) => groups.flatMap((group) => group.members);

// "a..b": from one region to another, in the order in which they stand. All, where one is not there.
function between(groups, regions, range) {
  const order = members(groups);
  const [first, last] = range.split("..").map((id) => order.findIndex((at) => regions[at] === id));
  if (!(first >= 0 && last >= first)) return groups;
  const inside = new Set(order.slice(first, last + 1));
  return kept(groups, (at) => inside.has(at));
}

export const rangeOf = (regions, order, first, last) => `${regions[order[first]]}..${regions[order[last]]}`;

// groups: of order.js. Returns { rows, columns } as groups, `all` as [rows, columns] before zooming, and
// `empty`: how many rows and columns were left out because they have no figure.
export function selected(matrix, groups, facts, state) {
  const { regions, values } = matrix;
  const [from, to] = [accepts(facts, state.from, state.src), accepts(facts, state.to, state.dst)];
  let rows = kept(groups, (at) => from(regions[at]));
  let columns = kept(groups, (at) => to(regions[at]));
  const empty = [0, 0];
  if (!state.empty) {
    const [sources, targets] = [members(rows), members(columns)];
    const inRows = new Set(sources.filter((src) => targets.some((dst) => values[src][dst] !== null)));
    const inColumns = new Set(targets.filter((dst) => sources.some((src) => values[src][dst] !== null)));
    empty[0] = sources.length - inRows.size;
    empty[1] = targets.length - inColumns.size;
    rows = kept(rows, (at) => inRows.has(at));
    columns = kept(columns, (at) => inColumns.has(at));
  }
  const all = [members(rows).length, members(columns).length];
  return { rows: between(rows, regions, state.rows), columns: between(columns, regions, state.columns), all, empty };
}

// The first rows and columns of a selection: a table of more is too large to draw, and to read.
export function truncated(picked, most) {
  const [rows, columns] = [picked.rows, picked.columns].map((groups) => {
    const first = new Set(members(groups).slice(0, most));
    return kept(groups, (at) => first.has(at));
  });
  const isTruncated = members(picked.rows).length > most || members(picked.columns).length > most;
  return { ...picked, rows, columns, isTruncated };
}
