// What has changed since yesterday: lasting shifts of links, plans that were verified, estimates.

import { element } from "../shared/dom.js";
import { count, gbps, times } from "../shared/format.js";
import { pairLink } from "../shared/pairs.js";
import { since, small, tag } from "../shared/parts.js";
import { metricOf } from "../pair/metrics.js";

const MOST = 8;

// Regions may be called anything: `src>dst` is the subject.
function verified({ subject, detail }) {
  const ends = subject.split(">");
  const carried = detail.expected_gbps > 0 ? `: carried ${gbps(detail.achieved_gbps)} of ${gbps(detail.expected_gbps)} expected` : "";
  return [tag("plan verified", detail.held ? "good" : "warn"), " ", ends.length === 2 ? pairLink(...ends) : subject, carried];
}

function shifted({ src, dst, metric, before, after }) {
  const { name, shown, scale } = metricOf(metric);
  return [tag("level changed"), " ", pairLink(src, dst), `: ${name.toLowerCase()} ${shown(before * scale)} → ${shown(after * scale)}`];
}

function snapshots({ before, snapshot, total_by_source: totals, new_regions: come, lost_regions: gone }) {
  if (!before) return element("p", { class: "muted" }, "No snapshot from yesterday is kept, so estimates can't be compared.");
  if (before.id === snapshot.id) return element("p", {}, `Snapshot ${before.id} is still the newest: no estimate changed.`);
  const moved = totals.measured ?? 0;
  const regions = [come.length && `${count(come.length)} new`, gone.length && `${count(gone.length)} lost`].filter(Boolean).join(", ");
  return element("p", {}, `From snapshot ${before.id} to ${snapshot.id}, `,
    moved ? `${count(moved)} measured ${moved === 1 ? "estimate" : "estimates"} left the bounds that they had` : "every measured estimate stayed within its bounds",
    regions ? `; regions: ${regions}.` : ".");
}

const largest = (changes) => changes.filter((each) => each.dst && each.ratio !== null).map((each) =>
  element("li", {}, tag("estimate"), " ", pairLink(each.src, each.dst), `: ${METRICS[each.metric] ?? each.metric} now ${times(each.ratio)} of then. `, thenAndNow(each)));

// The plan of 1 TB today, beside that of yesterday's snapshot.
function thenAndNow({ src, dst }) {
  const asked = { src, dst, volume_gb: 1000 };
  const then = new URLSearchParams({ ...asked, snapshot: "1d" });
  return element("a", { href: `./?${new URLSearchParams(asked)}#${new URLSearchParams({ beside: then })}` }, "Plans then and now");
}
const METRICS = { aggregate_gbps: "aggregate", per_flow_mbps: "one flow", rtt_ms: "round trip" };

export function changesOf({ events }, changes) {
  const happened = [
    ...events.filter(({ kind }) => kind === "verification").map((event) => [event.at_s, verified(event)]),
    ...changes.shifts.map((shift) => [shift.found_at_s, shifted(shift)]),
  ].sort(([a], [b]) => b - a);
  return [element("h2", {}, "What changed since yesterday"),
    happened.length ? element("ul", { class: "events" }, happened.slice(0, MOST).map(([at_s, text]) =>
      element("li", {}, text, small(since(at_s, " ")))))
      : element("p", {}, "No link changed its level, and no plan was verified."),
    happened.length > MOST && element("p", { class: "muted" }, `${count(happened.length - MOST)} more events of links.`),
    snapshots(changes),
    changes.before && element("ul", { class: "events" }, largest(changes.changes)),
    element("p", {}, element("a", { href: "fleet#changed" }, "All changes, also since a week or a month ago"))];
}
