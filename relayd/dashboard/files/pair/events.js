// What happened to a link: rules in the chart, numbered, and a table that says what they are.

import { element, number, sortable, words } from "../shared/dom.js";
import { figure, when } from "../shared/format.js";
import { metricOf } from "./metrics.js";

const kindOf = (event) => (event.kind === "shift" ? "shift" : event.condition);
const SHOWN = { shift: "level changed", down: "down", degraded: "degraded", up: "up again" };

// Numbered by time, the first first: so the chart and the table agree whatever is shown.
function numbered(events) {
  return [...events].reverse().map((event, at) => ({ ...event, number: at + 1 }));
}

// Those that concern a metric and the time shown: changes of other metrics are in the table alone.
// Labels that would overlap at a width of the chart stand one above the other, at most `LEVELS`.
const LEVELS = 4;
const LABEL_PX = 78;
export function marks(events, metric, found, width) {
  if (!found.bins.length) return [];
  const [first, last] = [found.bins[0].begin_s, found.bins.at(-1).end_s];
  const room = (LABEL_PX / Math.max(width, 200)) * (last - first);
  const taken = Array(LEVELS).fill(-Infinity);
  return numbered(events)
    .filter((event) => (event.kind === "leg" || event.metric === metric) && event.at_s >= first && event.at_s <= last)
    .map((event) => {
      const level = taken.findIndex((until) => until <= event.at_s);
      if (level >= 0) taken[level] = event.at_s + room;
      return { x: event.at_s, kind: kindOf(event), level: Math.max(0, level), atEnd: event.at_s > last - room, label: level < 0 ? "" : `${event.number} ${brief(event)}` };
    });
}

function change(event) {
  if (!(event.before > 0)) return "";
  return `${event.after >= event.before ? "+" : "−"}${figure(Math.abs(event.after / event.before - 1) * 100)} %`;
}
const brief = (event) => (event.kind === "leg" ? event.condition : change(event));

function said(event) {
  if (event.kind === "leg") return `${event.condition_before ?? "?"} → ${event.condition}${event.reason ? `: ${event.reason}` : ""}`;
  const about = metricOf(event.metric);
  const by = change(event);
  return `${about.name}: ${figure(event.before * about.scale)} → ${about.shown(event.after * about.scale)}${by && ` (${by})`}`;
}

export function eventsTable(events) {
  if (!events.length) return element("p", { class: "muted" }, "Nothing happened to this link: no change of level was found, and no outage was seen.");
  return sortable("What happened, as numbered in the chart; times in UTC", [
    number("No.", "number"),
    words("Time", "at_s", when),
    words("What", kindOf, (kind) => element("span", { class: `tag event-${kind}` }, SHOWN[kind] ?? kind)),
    words("Change", said),
  ], numbered(events), { order: 0, descending: true });
}
