// Draws charts by uPlot, which is loaded when the first one is wanted. What a chart marks (bounds, events,
// points that lead on) are elements above its canvas: styled like all others. Every
// chart has its figures as a table below it, for screen readers and for copying.

import { colour, element, fail, onTheme, replace } from "./kit.js";

let library = null;
function loaded() {
  const url = (name) => new URL(`../vendor/${name}`, import.meta.url).href;
  return library ??= new Promise((resolve, reject) => document.head.append(
    element("link", { rel: "stylesheet", href: url("uplot.css") }),
    element("script", { src: url("uplot.js"), on: { load: () => resolve(globalThis.uPlot), error: reject } })));
}

const axis = ({ title, ticks, splits, space = 60, size }, side) => ({
  side, splits, label: title, labelSize: title ? 22 : 0, size: size ?? (side === 3 ? 58 : 34), space, values: ticks && ((_, splits) => splits.map(ticks)),
  stroke: colour("muted"), grid: { stroke: colour("faint"), width: 1 }, ticks: { stroke: colour("line"), width: 1, size: 5 },
  font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
});

// values: by series and point. kind: "line", "steps", "dots", or "ranges" whose values are [low, high].
function drawnAs(uPlot, { kind, color, width = 2, dash, fill, size = 5 }, ranges) {
  const line = { stroke: colour(color), width, dash, fill: fill && `color-mix(in srgb, ${colour(color)} 35%, transparent)`, points: { show: false } };
  if (kind === "dots") return { stroke: colour(color), width: 0, paths: () => null, points: { show: true, size, width: 0, fill: colour(color) } };
  if (kind === "steps") return { ...line, paths: uPlot.paths.stepped({ align: 1 }) };
  if (kind !== "ranges") return line;
  return { ...line, paths: (plot, _, first, last) => {
    const stroke = new Path2D();
    for (let at = first; at <= last; at += 1) {
      const x = plot.valToPos(plot.data[0][at], "x", true);
      stroke.moveTo(x, plot.valToPos(ranges[at][0], "y", true));
      stroke.lineTo(x, plot.valToPos(ranges[at][1], "y", true));
    }
    return { stroke };
  } };
}

const LEVEL_PX = 13;
// bands: { low, high, kind } across; rules: { y | x, kind, label, level, atEnd }; marks: made elements at { x, y, made }.
function overlay(plot, { bands = [], rules = [], marks = [] }) {
  const at = (value, scale) => plot.valToPos(value, scale);
  const [width, height] = [plot.over.clientWidth, plot.over.clientHeight];
  const placed = (made, style) => {
    for (const [name, px] of Object.entries(style)) made.style[name] = `${px}px`;
    return made;
  };
  const mark = (kind, style, ...said) => placed(element("i", { class: kind }, said), style);
  const isIn = (x) => x >= -1 && x <= width + 1;
  const within = (y) => Math.max(0, Math.min(height, y));
  const label = (text, level, atEnd) => text && placed(element("b", { class: atEnd && "at-end" }, text), { top: -LEVEL_PX * (level + 1) - 3 });
  return [
    ...bands.map(({ low, high, kind, along = "y" }) => {
      const [from, to] = [at(low, along), at(high, along)];
      return mark(`across ${kind}`, along === "x" ? { left: from, width: to - from, top: 0, height }
        : { left: 0, width, top: within(to), height: within(from) - within(to) });
    }),
    ...rules.filter(({ x, y }) => (x === undefined ? y !== null : isIn(at(x, "x")))).map((rule) => (rule.x === undefined
      ? mark(`rule flat ${rule.kind}`, { left: 0, width, top: at(rule.y, "y") })
      : mark(`rule ${rule.kind}`, { left: at(rule.x, "x"), top: 0, height }, label(rule.label, rule.level, rule.atEnd)))),
    ...marks.filter(({ x }) => isIn(at(x, "x"))).map(({ x, y, made }) => placed(made, { left: at(x, "x"), top: at(y, "y") })),
  ];
}

// make(width): what is drawn, with today's colours: { x, y: { title, ticks, range }, isTime, values, series, bands,
// rules, marks, levels (of labels above), height }. The first of `values` are those of x, in seconds where it is time.
// title: what the chart shows, for readers who can't see it; figures(): an element with its figures, made when it is
// opened. Returns an element that draws itself once it is in the page.
export function chart(make, { title, figures }) {
  const drawing = element("div", { class: "chart", role: "img", "aria-label": title });
  const details = element("details", { on: { toggle: () => details.lastChild === summary && details.append(figures()) } });
  const summary = details.appendChild(element("summary", {}, "Figures"));
  loaded().then((uPlot) => requestAnimationFrame(() => start(uPlot, drawing, make)), fail);
  return [drawing, details];
}

const drawn = new Map(); // what lets a chart go, by its drawing

function start(uPlot, drawing, make) {
  for (const [each, letGo] of drawn) if (!each.isConnected && drawn.delete(each)) letGo();
  if (!drawing.isConnected) return;
  let plot = null;
  const width = () => Math.max(200, drawing.clientWidth);
  function draw() {
    plot?.destroy();
    const what = make(width());
    const over = element("div", { class: "marks" });
    const data = what.values.map((each, at) => (what.series[at - 1]?.kind === "ranges" ? each.map(([low]) => low) : each));
    plot = drawing.plot = new uPlot({
      width: width(), height: what.height ?? 300, legend: { show: false }, padding: [what.levels ? LEVEL_PX * what.levels + 6 : 10, 14, 4, 0],
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      cursor: what.isStill ? { show: false } : { y: false, points: { show: false } },
      scales: { x: { time: Boolean(what.isTime), range: what.x.range }, y: { range: what.y.range } },
      axes: [axis({ space: 90, ...what.x }, 2), axis({ space: 40, ...what.y }, 3)],
      series: [{}, ...what.series.map((each, at) => drawnAs(uPlot, each, what.values[at + 1]))],
      hooks: { ready: [(made) => made.over.append(over)], draw: [(made) => replace(over, overlay(made, what))] },
    }, data, drawing);
  }
  draw();
  const forget = onTheme(draw);
  const watch = new ResizeObserver(() => {
    if (plot.width !== width()) plot.setSize({ width: width(), height: plot.height });
  });
  watch.observe(drawing);
  // Once it is replaced, before the next one is drawn.
  drawn.set(drawing, () => {
    forget();
    watch.disconnect();
    plot.destroy();
  });
}
