// History of one metric with bounds of today and what happened, and how its values are spread.

import { chart } from "../shared/chart.js";
import {
  duration, element, figure, folded, fragment, get, keep, key, muted, number, quantile, radios, replace, secondary, show,
  small, sortable, table, when, words,
} from "../shared/kit.js";
import { QUANTITIES, beliefOf, metricOf } from "../shared/metrics.js";

const DAY_S = 86400;
const RANGES = [["", "all of it", Infinity], ["90d", "newest 90 days", 90 * DAY_S],
  ["30d", "newest 30 days", 30 * DAY_S], ["7d", "newest 7 days", 7 * DAY_S], ["24h", "newest 24 hours", DAY_S]];
const MOST_POINTS = 2000;

// In the order in which people ask for them; what is not listed comes last.
const place = ({ metric }) => (Object.keys(QUANTITIES).indexOf(metric) + 99) % 99;

// What is chosen is in the address, so that it can be shared.
export function historyPanels(path, seen, link, events) {
  const metrics = [...seen].sort((a, b) => place(a) - place(b));
  const asked = fragment();
  let metric = metrics.find((each) => each.metric === asked.get("metric")) ?? metrics[0];
  const [drawing, told, spread] = [element("div"), element("div"), element("div")];
  const said = element("p", { class: "muted", role: "status" });
  const legend = element("p", { class: "legend" });
  const range = element("select", { name: "range", on: { change: () => choose() } });
  const names = metrics.map(({ metric: each, samples }) => [each, [metricOf(each).name, small(` ${figure(samples)}`)]]);
  const choices = radios("Metric", "metric", names, metric.metric, (chosen) => {
    metric = metrics.find((each) => each.metric === chosen);
    ranges();
    choose();
  });

  // Ranges that are longer than the series say nothing new.
  function ranges() {
    const length = metric.last_at_s - metric.first_at_s;
    const chosen = range.value || (fragment().get("range") ?? "");
    const fitting = RANGES.filter(([, , seconds]) => seconds === Infinity || seconds < length);
    replace(range, fitting.map(([value, text]) => element("option", { value, selected: value === chosen }, text)));
  }

  function choose() {
    keep({ metric: metric.metric, range: range.value });
    show(draw);
  }

  let latest = 0;
  async function draw() {
    const turn = ++latest;
    const [, , seconds] = RANGES.find(([value]) => value === range.value);
    const found = await get(`${path}/summary`, { metric: metric.metric, bins: 200, list_up_to: MOST_POINTS,
      since_s: seconds === Infinity ? null : Math.max(0, metric.last_at_s - seconds) });
    if (turn !== latest) return;
    const about = metricOf(metric.metric);
    const belief = beliefOf(about, link);
    said.textContent = summed(found, about);
    replace(legend, belief && key("today", "today's bounds, expected dashed"),
      events.length > 0 && key("event", "what happened, told below"));
    const happened = marks(events, metric.metric, found, panel.clientWidth - 90);
    replace(drawing, found.samples ? drawn(found, about, belief, happened)
      : element("p", { class: "empty" }, "No sample is in this time."));
    replace(told, eventsTable(events));
    replace(spread, distribution(found, about, belief));
  }

  function drawn(found, about, belief, happened) {
    const [begin, end] = [found.bins[0].begin_s, found.bins.at(-1).end_s].map(when);
    const title = `${about.name} over time: ${summed(found, about)} From ${begin} to ${end}.`;
    return chart(() => specification(found, about, belief, happened), { title, figures: () => figures(found, about) });
  }

  ranges();
  show(draw);
  const panel = secondary("history", "History", element("div", { class: "row controls" }, choices,
    element("label", {}, "Time", range)), said, legend, drawing, told);
  panel.classList.add("wide");
  return [panel, folded("distribution", "Distribution", spread)];
}

function summed(found, about) {
  const { samples, bins, quantiles, compacted } = found;
  if (!samples) return "";
  const time = bins.at(-1).end_s - bins[0].begin_s;
  const count = `${figure(samples)} ${samples === 1 ? "sample" : "samples"}`;
  return `${[
    time > 0 ? `${count} over ${duration(time)}` : `${count}, of ${when(bins[0].begin_s)}`,
    quantiles.length && `median ${about.shown(quantile(quantiles, 0.5) * about.scale)}`,
    !found.points && "each dot the median and each bar the range of a two-hundredth of the time",
    compacted && `${figure(compacted)} are kept as summaries alone`,
  ].filter(Boolean).join("; ")}.`;
}

function specification({ points, bins }, about, belief, happened) {
  const to = (value) => value * about.scale;
  const [begin, end] = [bins[0].begin_s, bins.at(-1).end_s];
  const room = 0.02 * (end - begin || DAY_S);
  const isLong = end - begin >= 400 * DAY_S;
  const time = new Intl.DateTimeFormat("en-US", {
    timeZone: "UTC", month: "short", ...(isLong ? { year: "numeric" } : { day: "numeric" }),
    ...(end - begin < 3 * DAY_S && { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }),
  });
  const dots = { kind: "dots", color: "chosen", size: (points ?? bins).length > 100 ? 4 : 6 };
  const seen = points?.map((each) => each.value) ?? bins.flatMap((each) => [each.low, each.high]);
  return {
    isTime: true, height: 300, levels: Math.max(0, ...happened.map((each) => each.level + 1)),
    values: points ? [points.map((each) => each.at_s), points.map((each) => to(each.value))]
      : [bins.map((each) => (each.begin_s + each.end_s) / 2), bins.map((each) => [to(each.low), to(each.high)]),
        bins.map((each) => to(each.median))],
    series: points ? [dots] : [{ kind: "ranges", color: "line", width: 2.5 }, dots],
    x: { ticks: (at) => time.format(at * 1000), space: 110,
      range: (_, low, high) => (high - low >= end - begin - 1 ? [begin - room, end + room] : [low, high]) },
    y: { title: `${about.name}, ${about.unit}`, range: () => reach(seen.map(to), belief, about) },
    bands: belief && belief.high > belief.low ? [{ ...belief, kind: "today" }] : [],
    rules: [...(belief ? [{ y: belief.expected, kind: "today" }] : []), ...happened],
  };
}

// Of the axis: all that is drawn, from zero where nearness to zero says something.
function reach(values, belief, { zero }) {
  const seen = [...values, ...(belief ? [belief.low, belief.high] : [])];
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
  const rows = found.points ?? found.bins;
  return element("div", { class: "figures" }, sortable(`${about.name} over time`, columns, rows, { descending: true }));
}

// ---- how values are spread ----

const SHARES = [0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1];

function distribution(found, about, belief) {
  const { name, unit, scale, shown } = about;
  const quantiles = found.quantiles.map((value) => value * scale);
  const title = element("h3", {}, `Of ${name.toLowerCase()}`, small(` n = ${figure(found.samples - found.compacted)}`));
  if (!quantiles.length) return [title, muted("No single sample is in this time.")];
  if (!found.has_shape) {
    const [count, value] = quantiles.length === 1 ? ["1 sample", "value"] : [`${quantiles.length} samples`, "values"];
    return [title, element("p", {}, `With ${count} there is no distribution to speak of (at least 8 are needed). `
      + `The ${value}: ${quantiles.map(figure).join(", ")} ${unit}.`)];
  }
  const at = (share) => quantile(quantiles, share);
  const between = (low, high) => `between ${figure(at(low))} and ${shown(at(high))}`;
  const half = at(0.25) === at(0.75) ? `At least half of the samples are ${shown(at(0.5))}`
    : `Half of the samples lie ${between(0.25, 0.75)}`;
  const said = `${half}, nine of ten ${between(0.05, 0.95)}; median ${shown(at(0.5))}.`;
  const shares = () => table("", `Quantiles, ${unit}`,
    [words("Share", (part) => `${part * 100} %`), number(unit, (part) => figure(at(part)))], SHARES);
  // Bars follow each other: the last height holds to the last end.
  const bars = found.histogram.map(({ low, high, samples }) =>
    [low * scale, high > low ? high * scale : high * scale * 1.001 + 1e-3, samples]);
  const values = [[...bars.map(([low]) => low), bars.at(-1)[1]], [...bars, bars.at(-1)].map(([, , samples]) => samples)];
  const room = 0.04 * (values[0].at(-1) - values[0][0] || values[0].at(-1) || 1);
  const [low, high] = [values[0][0] - room, values[0].at(-1) + room];
  const today = belief?.high > belief?.low
    && { low: Math.max(low, belief.low), high: Math.min(high, belief.high), kind: "today", along: "x" };
  const drawing = chart(() => ({
    height: 240, isStill: true, values, series: [{ kind: "steps", color: "chosen", fill: true }],
    x: { title: `${name}, ${unit}`, range: () => [low, high] },
    y: { title: "samples", range: (_, least, most) => [0, most * 1.05] },
    rules: [{ x: at(0.5), kind: "middle" }], bands: today && today.high > today.low ? [today] : [],
  }), { title: `Distribution of ${name}. ${said}`, figures: shares });
  return [title, element("p", { class: "legend" }, key("middle", "median"), today && key("today", "today's bounds")), drawing,
    element("p", {}, said, found.compacted > 0 && ` ${figure(found.compacted)} older samples, kept as summaries, are not in it.`)];
}

// ---- what happened ----

const kindOf = (event) => (event.kind === "shift" ? "shift" : event.condition);
const SHOWN = { shift: "level changed", down: "down", degraded: "degraded", up: "up again" };
const LEVELS = 4;
const LABEL_PX = 78;

// Numbered by time, the first first: so the chart and the table agree whatever is shown.
const numbered = (events) => [...events].reverse().map((event, at) => ({ ...event, number: at + 1 }));

// Rules of a chart: events of a metric and the time shown; changes of other metrics are in the table alone.
// Labels that would overlap stand one above the other, at most `LEVELS`.
function marks(events, metric, { bins }, width) {
  if (!bins.length) return [];
  const [first, last] = [bins[0].begin_s, bins.at(-1).end_s];
  const room = (LABEL_PX / Math.max(width, 200)) * (last - first);
  const taken = Array(LEVELS).fill(-Infinity);
  const isShown = (event) => (event.kind === "leg" || event.metric === metric) && event.at_s >= first && event.at_s <= last;
  return numbered(events).filter(isShown).map((event) => {
    const level = taken.findIndex((until) => until <= event.at_s);
    if (level >= 0) taken[level] = event.at_s + room;
    const label = level < 0 ? "" : `${event.number} ${event.kind === "leg" ? event.condition : change(event)}`;
    return { x: event.at_s, kind: kindOf(event), level: Math.max(0, level), atEnd: event.at_s > last - room, label };
  });
}

const change = ({ before, after }) => (before > 0
  ? `${after >= before ? "+" : "−"}${figure(Math.abs(after / before - 1) * 100)} %` : "");

function said(event) {
  const { kind, condition_before: before, condition, reason } = event;
  if (kind === "leg") return `${before ?? "?"} → ${condition}${reason ? `: ${reason}` : ""}`;
  const { name, scale, shown } = metricOf(event.metric);
  const by = change(event);
  return `${name}: ${figure(event.before * scale)} → ${shown(event.after * scale)}${by && ` (${by})`}`;
}

function eventsTable(events) {
  if (!events.length) return muted("Nothing happened to this link: no change of level was found, and no outage was seen.");
  return sortable("What happened, as numbered in the chart; times in UTC", [
    number("No.", "number"), words("Time", "at_s", when),
    words("What", kindOf, (kind) => element("span", { class: `tag event-${kind}` }, SHOWN[kind] ?? kind)),
    words("Change", said),
  ], numbered(events), { order: 0, descending: true });
}
