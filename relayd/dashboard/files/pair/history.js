// History of one metric with today's bounds and what happened, and its distribution.

import { get } from "../shared/api.js";
import { chart } from "../shared/chart.js";
import { element, number, replace, sortable, words } from "../shared/dom.js";
import { duration, figure, when } from "../shared/format.js";
import { distribution } from "./distribution.js";
import { eventsTable, marks } from "./events.js";
import { inOrder, metricOf } from "./metrics.js";
import { key, small, widePanel } from "../shared/parts.js";
import { median } from "../shared/quantiles.js";
import { show } from "../shared/shell.js";

const DAY_S = 86400;
const RANGES = [["", "all of it", Infinity], ["90d", "newest 90 days", 90 * DAY_S], ["30d", "newest 30 days", 30 * DAY_S],
  ["7d", "newest 7 days", 7 * DAY_S], ["24h", "newest 24 hours", DAY_S]];
const MOST_POINTS = 2000;

// address: { asked, keep } of the page, so that what is chosen can be shared.
export function historyPanels(path, seen, link, events, address) {
  const metrics = inOrder(seen);
  const asked = address.asked();
  let metric = metrics.find((each) => each.metric === asked.metric) ?? metrics[0];
  const drawing = element("div", { class: "history-chart" });
  const said = element("p", { class: "muted", role: "status" });
  const told = element("div");
  const legend = element("p", { class: "legend" });
  const spread = element("div");
  const since = element("input", { type: "date", name: "since", value: asked.since, on: { change: () => choose({ range: "" }) } });
  const until = element("input", { type: "date", name: "until", value: asked.until, on: { change: () => choose({ range: "" }) } });
  const range = element("select", { name: "range", on: { change: () => {
    since.value = until.value = "";
    choose({});
  } } });
  const choices = element("div", { class: "choices", role: "radiogroup", "aria-label": "Metric" }, metrics.map((each) => element("label", { class: "choice" },
    element("input", { type: "radio", name: "metric", value: each.metric, checked: each === metric, on: { change: () => {
      metric = each;
      ranges();
      choose({});
    } } }), element("span", {}, metricOf(each.metric).name, small(` ${figure(each.samples)}`)))));

  // Ranges that are longer than the series say nothing new.
  function ranges() {
    const length = metric.last_at_s - metric.first_at_s;
    const chosen = range.value || address.asked().range || "";
    const fitting = RANGES.filter(([, , seconds]) => seconds === Infinity || seconds < length);
    replace(range, fitting.map(([value, text]) => element("option", { value }, text)));
    range.value = fitting.some(([value]) => value === chosen) ? chosen : "";
  }

  function choose(changes) {
    if ("range" in changes) range.value = changes.range;
    address.keep({ metric: metric.metric, range: range.value, since: since.value, until: until.value });
    show(draw);
  }

  function stretch() {
    if (since.value || until.value) {
      const from = since.value ? Date.parse(since.value) / 1000 : null;
      const to = until.value ? Date.parse(until.value) / 1000 + DAY_S - 1 : null;
      return from !== null && to !== null && to < from ? { since_s: to - DAY_S + 1, until_s: from + DAY_S - 1 } : { since_s: from, until_s: to };
    }
    const [, , seconds] = RANGES.find(([value]) => value === range.value);
    return seconds === Infinity ? {} : { since_s: Math.max(0, metric.last_at_s - seconds) };
  }

  let latest = 0;
  async function draw() {
    const turn = ++latest;
    const found = await get(`${path}/summary`, { metric: metric.metric, bins: 200, list_up_to: MOST_POINTS, ...stretch() });
    if (turn !== latest) return;
    const about = metricOf(metric.metric);
    said.textContent = summed(found, about);
    replace(legend, about.bounds(link) ? key("today", "today's bounds, expected dashed") : null, events.length ? key("event", "what happened, told below") : null);
    const happened = marks(events, metric.metric, found, panel.clientWidth - 90);
    if (found.samples) await drawn(found, about, happened);
    else replace(drawing, element("p", { class: "empty" }, "No sample is in this time."));
    replace(told, eventsTable(events));
    distribution(spread, found, about, link);
  }

  // Up to two thousand rows: made when they are wanted.
  function drawn(found, about, happened) {
    const table = element("div");
    const done = chart(drawing, specification(found, about, link, happened), { title: spoken(found, about), table });
    drawing.querySelector("details").addEventListener("toggle", () => table.firstChild || replace(table, figures(found, about)));
    return done;
  }

  ranges();
  show(draw);
  const panel = widePanel("history", "History",
    element("div", { class: "row controls" }, choices,
      element("div", { class: "row times" }, element("label", {}, "Time", range), element("label", {}, "from", since), element("label", {}, "to", until))),
    said, legend, drawing, told);
  return [panel, widePanel("distribution", "Distribution", spread)];
}

function summed(found, about) {
  if (!found.samples) return "";
  const time = found.bins.at(-1).end_s - found.bins[0].begin_s;
  const parts = [time > 0 ? `${figure(found.samples)} samples over ${duration(time)}` : `${figure(found.samples)} ${found.samples === 1 ? "sample" : "samples"}, of ${when(found.bins[0].begin_s)}`];
  if (found.quantiles.length) parts.push(`median ${about.shown(median(found.quantiles) * about.scale)}`);
  if (!found.points) parts.push("each dot the median and each bar the range of a two-hundredth of the time");
  if (found.compacted) parts.push(`${figure(found.compacted)} are kept as summaries alone`);
  return `${parts.join("; ")}.`;
}

const spoken = (found, about) => `${about.name} over time: ${summed(found, about)} From ${when(found.bins[0].begin_s)} to ${when(found.bins.at(-1).end_s)}.`;

function specification(found, about, link, happened) {
  const bounds = about.bounds(link);
  const to = (value) => value * about.scale;
  const { points, bins } = found;
  const [begin, end] = [bins[0].begin_s, bins.at(-1).end_s];
  const room = 0.02 * (end - begin || DAY_S);
  const years = end - begin >= 400 * DAY_S;
  const named = { timeZone: "UTC", month: "short", ...(years ? { year: "numeric" } : { day: "numeric" }), ...(end - begin < 3 * DAY_S ? { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } : {}) };
  const time = new Intl.DateTimeFormat("en-US", named);
  const dots = { kind: "dots", color: "chosen", size: (points ?? bins).length > 100 ? 4 : 6 };
  const levels = Math.max(0, ...happened.map((each) => each.level + 1));
  return () => ({
    isTime: true, height: 300, levels,
    values: points ? [points.map((each) => each.at_s), points.map((each) => to(each.value))]
      : [bins.map((each) => (each.begin_s + each.end_s) / 2), bins.map((each) => [to(each.low), to(each.high)]), bins.map((each) => to(each.median))],
    series: points ? [dots] : [{ kind: "ranges", color: "line", width: 2.5 }, dots],
    x: { ticks: (at) => time.format(at * 1000), space: 110, range: (_, low, high) => (high - low >= end - begin - 1 ? [begin - room, end + room] : [low, high]) },
    y: { title: `${about.name}, ${about.unit}`, range: () => reach(points?.map((each) => each.value) ?? bins.flatMap((each) => [each.low, each.high]), bounds, about) },
    bands: bounds && bounds.high > bounds.low ? [{ ...bounds, kind: "today" }] : [],
    rules: [...(bounds ? [{ y: bounds.expected, kind: "today" }] : []), ...happened],
  });
}

// Of the axis: all that is drawn, from zero where nearness to zero says something.
function reach(values, bounds, { scale, zero }) {
  const seen = [...values.map((value) => value * scale), ...(bounds ? [bounds.low, bounds.high] : [])];
  const [low, high] = [zero ? 0 : Math.min(...seen), Math.max(...seen)];
  const room = 0.06 * (high - low || high || 1);
  return [zero ? 0 : Math.max(0, low - room), high + room];
}

function figures(found, about) {
  const shown = (value) => figure(value * about.scale);
  const columns = found.points
    ? [words("Measured at", "at_s", when), number(about.name, "value", shown, about.unit), number("Connections", "connections")]
    : [words("From", "begin_s", when), words("To", "end_s", when),
      ...["low", "median", "high"].map((name) => number(name, name, shown, about.unit)), number("Samples", "samples", figure)];
  return element("div", { class: "figures" }, sortable(`${about.name} over time`, columns, found.points ?? found.bins, { descending: true }));
}
