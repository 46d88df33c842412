// What has changed since an earlier snapshot: estimates that left their bounds, regions, and levels of links.

import {
  ago, askAddress, button, cardTable, element, figure, link, muted, number, pairLink, since, small, tag, times, when,
  withCode, words,
} from "../shared/kit.js";
import { metricOf } from "../shared/metrics.js";

export function described({ before, oldest, snapshot, since_s, changes: found, total_by_source: totals, ...others }, compareSince) {
  if (!oldest) {
    return element("p", { class: "empty" }, "There is no snapshot yet, so nothing to compare. ",
      withCode("`relayd import` or `relayd probe` makes one."));
  }
  if (!before) {
    const old_s = Math.max(1, Math.floor(Date.now() / 1000 - oldest.created_at_s) - 1);
    return [element("div", { class: "empty" }, element("p", {}, element("strong", {}, `No snapshot is kept from ${ago(since_s)}. `),
      since(oldest.created_at_s, `The oldest, ${oldest.id}, was made `, ".")),
    oldest.id === snapshot.id ? muted("It is the only one: changes show once there is a second.")
      : compareSince && button("Compare with the oldest", () => compareSince(old_s)))];
  }
  if (before.id === snapshot.id) {
    return element("p", {}, since(before.created_at_s, `Nothing: snapshot ${before.id}, made `, ", still is the newest."));
  }
  const { measured = 0, inferred = 0, baseline = 0 } = totals;
  return [element("p", {}, `Between snapshot ${before.id} of ${when(before.created_at_s)} and now, ${figure(measured)} measured `
    + `estimate${measured === 1 ? "" : "s"}, ${figure(inferred)} inferred and ${figure(baseline)} of the baseline left the bounds that they had.`),
  regions(others), found.length ? changeTable(found, before.id) : muted(compareSince ? "None of those chosen above." : "No measured estimate left its bounds.")];
}

const regions = ({ new_regions: come, lost_regions: gone }) => (come.length || gone.length) > 0 && element("p", {},
  come.length > 0 && [tag("new regions", "good"), ` ${come.join(", ")} `],
  gone.length > 0 && [tag("lost regions", "bad"), ` ${gone.join(", ")}`]);

// From and to: estimates in the unit of their metric.
const estimate = (title, value) => number(title, value, ({ expected, low, high, source, basis }, { metric }) =>
  element("span", { title: basis }, metricOf(metric).shown(expected), small(`${figure(low)} to ${figure(high)}, ${source}`)));

const changeTable = (found, then) => cardTable("changes", "Estimates that left their bounds, the largest change first", [
  words("Where", ({ src, dst }) => (dst ? pairLink(src, dst) : src)), words("What", "metric", (metric) => metricOf(metric).name),
  estimate("Then", "before"), estimate("Now", "after"), number("Now / then", "ratio", times),
  words("In words", "ratio", (ratio, { metric }) => inWords(ratio, metricOf(metric).isLess)),
  words("Plans", (each) => each.dst && link(thenAndNow(each, then), "Plans then and now")),
], found);

// The plan of 1 TB today, next to that of the snapshot of then.
function thenAndNow({ src, dst }, snapshot) {
  const asked = { src, dst, volume_gb: 1000 };
  return `${askAddress(asked)}#${new URLSearchParams({ beside: new URLSearchParams({ ...asked, snapshot }) })}`;
}

function inWords(ratio, isLess) {
  if (ratio === null) return "was nothing";
  const percent = (part) => `${Math.round(100 * part) || (100 * part).toPrecision(1)} %`;
  const size = ratio >= 2 ? `${ratio.toFixed(1)} times as much` : ratio <= 0.5 ? `down to ${percent(ratio)}`
    : ratio > 1 ? `${percent(ratio - 1)} more` : `${percent(1 - ratio)} less`;
  return [size, " ", ratio > 1 !== Boolean(isLess) ? tag("better", "good") : tag("worse", "bad")];
}

export const shifts = (found) => found.length > 0 && element("div", { class: "shifts" },
  element("h3", {}, "Lasting changes of level that were found since"),
  element("ul", {}, found.map(({ src, dst, metric, before, after, at_s: at, found_at_s: settled }) => {
    const { name, shown, scale } = metricOf(metric);
    return element("li", {}, pairLink(src, dst), `: ${name.toLowerCase()} ${shown(before * scale)} → ${shown(after * scale)} `
      + `from ${when(at)}`, since(settled, ", settled "));
  })));
