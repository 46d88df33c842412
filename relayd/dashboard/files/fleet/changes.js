// What has changed since yesterday, or since another time: from snapshots that the store keeps.

import { get } from "../shared/api.js";
import { cardTable, choice, more, redraw, since, small, tag } from "../shared/parts.js";
import { element, replace } from "../shared/dom.js";
import { FIGURES } from "../shared/figures.js";
import { ago, figure, times, when } from "../shared/format.js";
import { pairLink } from "../shared/pairs.js";
import { show } from "../shared/shell.js";

const TIMES = [[3600, "an hour ago"], [86400, "yesterday"], [7 * 86400, "a week ago"], [30 * 86400, "a month ago"]]
  .map(([seconds, text]) => [String(seconds), text]);
const SOURCES = [["measured", "measured here"], ["inferred", "inferred from others"], ["", "all"]];
const [PAGE, MOST] = [20, 1000];

// Fills a part, and returns what renews it.
export function changesPart(part) {
  const asked = { since_s: "86400", source: "measured", pages: 1 };
  const body = element("div");
  const ask = (changes) => {
    Object.assign(asked, { pages: 1, ...changes });
    show(refresh);
  };
  replace(part, element("h2", {}, "What has changed"), element("div", { class: "row" },
    choice("Since", TIMES, asked.since_s, (since_s) => ask({ since_s })), choice("Show", SOURCES, asked.source, (source) => ask({ source }))), body);
  async function refresh() {
    const { since_s, source, pages } = asked;
    const limit = Math.min(MOST, PAGE * pages);
    const found = await get("v1/changes", { since_s, source, limit });
    // The time that is asked for moves on; what was found is what counts.
    redraw(body, { ...found, ...asked }, () => [described(found, (seconds) => ask({ since_s: seconds })),
      found.next_cursor && limit < MOST && more(`Show more of ${figure(found.total)}`, () => ask({ pages: pages + 2 }))]);
  }
  return refresh;
}

function described({ before, oldest, snapshot, since_s, changes, total_by_source: totals, ...found }, compareSince) {
  const lasting = shifts(found.shifts);
  if (!oldest) {
    return element("p", { class: "empty" }, "There is no snapshot yet, so nothing to compare. ",
      element("code", {}, "relayd import"), " or ", element("code", {}, "relayd probe"), " makes one.");
  }
  if (!before) {
    const age = Math.max(1, Math.floor(Date.now() / 1000 - oldest.created_at_s) - 1);
    return [element("div", { class: "empty" }, element("p", {}, element("strong", {}, `No snapshot is kept from ${ago(since_s)}. `),
      since(oldest.created_at_s, `The oldest, ${oldest.id}, was made `, ".")),
    oldest.id === snapshot.id ? element("p", { class: "muted" }, "It is the only one: changes show once there is a second.")
      : element("button", { type: "button", on: { click: () => compareSince(age) } }, "Compare with the oldest")), lasting];
  }
  if (before.id === snapshot.id) {
    return [element("p", {}, since(before.created_at_s, `Nothing: snapshot ${before.id}, made `, ", still is the newest.")), lasting];
  }
  const { measured = 0, inferred = 0, baseline = 0 } = totals;
  const text = `Between snapshot ${before.id} of ${when(before.created_at_s)} and now, ${figure(measured)} measured estimate${measured === 1 ? "" : "s"}, `
    + `${figure(inferred)} inferred and ${figure(baseline)} of the baseline left the bounds that they had.`;
  return [element("p", {}, text), regions(found), changes.length ? table(changes) : element("p", { class: "muted" }, "None of those chosen above."), lasting];
}

const regions = ({ new_regions: come, lost_regions: gone }) => (come.length || gone.length) > 0 && element("p", {},
  come.length > 0 && [tag("new regions", "good"), ` ${come.join(", ")} `], gone.length > 0 && [tag("lost regions", "bad"), ` ${gone.join(", ")}`]);

const table = (changes) => cardTable("changes", "Estimates that left their bounds, the largest change first",
  [["Where"], ["What"], ["Then", "number"], ["Now", "number"], ["Now / then", "number"], ["In words"]], changes.map((change) => {
    const [name, shown] = FIGURES[change.metric] ?? [change.metric, figure];
    const estimate = (found) => element("span", { title: found.basis }, shown(found.expected), small(`${figure(found.low)} to ${figure(found.high)}, ${found.source}`));
    return { cells: [change.dst ? pairLink(change.src, change.dst) : change.src, name, estimate(change.before), estimate(change.after),
      times(change.ratio), words(change)] };
  }));

function words({ ratio, metric }) {
  if (ratio === null) return "was nothing";
  const better = ratio > 1 === (FIGURES[metric]?.[2] ?? true);
  const size = ratio >= 2 ? `${ratio.toFixed(1)} times as much` : ratio <= 0.5 ? `down to ${percent(ratio)}`
    : ratio > 1 ? `${percent(ratio - 1)} more` : `${percent(1 - ratio)} less`;
  return [size, " ", tag(better ? "better" : "worse", better ? "good" : "bad")];
}

const percent = (share) => `${Math.round(100 * share) || (100 * share).toPrecision(1)} %`;

const shifts = (found) => found.length > 0 && element("div", { class: "shifts" }, element("h3", {}, "Lasting changes of level that were found since"),
  element("ul", {}, found.map(({ src, dst, metric, before, after, at_s: at, found_at_s: settled }) => {
    const [name, shown] = FIGURES[metric] ?? [metric, figure];
    return element("li", {}, pairLink(src, dst), `: ${name.toLowerCase()} ${shown(before)} to ${shown(after)} from ${when(at)}`, since(settled, ", settled "));
  })));
