// Draws charts by uPlot, which is loaded when the first one is wanted. What a chart marks (bounds, events,
// points that lead on) are elements above its canvas: styled like all others. Every
// chart has its figures as a table below it, for screen readers and for copying.

import { colour, element, onTheme, replace } from "./kit.js";

let library = null;
function loaded() {
  const url = (name) => new URL(`../vendor/${name}`, import.meta.url).href;
  library ??= new Promise((resolve, reject) => {
    const style = element("link", { rel: "stylesheet", href: url("uplot.css") });
    const script = element("script", { src: url("uplot.js"), on: { load: () => resolve(globalThis.uPlot), error: reject } });
    document.head.append(style, script);
  });
  return library;
}

// Charts that were replaced are let go.
const shown = new Map();
function letGo() {
  for (const [drawing, end] of shown) {
    if (drawing.isConnected) continue;
    end();
    shown.delete(drawing);
  }
}

const axis = ({ title, ticks, space = 60, size }, side) => ({
  side, label: title, labelSize: title ? 22 : 0, size: size ?? (side === 3 ? 58 : 34), space, values: ticks && ((_, splits) => splits.map(ticks)),
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
  const placed = (made, style) => Object.assign(made.style, Object.fromEntries(Object.entries(style).map(([name, px]) => [name, `${px}px`]))) && made;
  const isIn = (x) => x >= -1 && x <= width + 1;
  const within = (y) => Math.max(0, Math.min(height, y));
  return [
    ...bands.map(({ low, high, kind, along = "y" }) => {
      if (along === "x") return placed(element("i", { class: `across ${kind}` }), { left: at(low, "x"), width: at(high, "x") - at(low, "x"), top: 0, height });
      const [top, bottom] = [within(at(high, "y")), within(at(low, "y"))];
      return placed(element("i", { class: `across ${kind}` }), { left: 0, width, top, height: bottom - top });
    }),
    ...rules.filter(({ x, y }) => (x === undefined ? y !== null : isIn(at(x, "x")))).map(({ x, y, kind, label, level = 0, atEnd }) => (x === undefined
      ? placed(element("i", { class: `rule flat ${kind}` }), { left: 0, width, top: at(y, "y") })
      : placed(element("i", { class: `rule ${kind}` }, label && placed(element("b", { class: atEnd ? "at-end" : "" }, label), { top: -LEVEL_PX * (level + 1) - 3 })), { left: at(x, "x"), top: 0, height }))),
    ...marks.filter(({ x }) => isIn(at(x, "x"))).map(({ x, y, made }) => placed(made, { left: at(x, "x"), top: at(y, "y") })),
  ];
}

// make(): what is drawn, with today's colours: { x, y: { title, ticks, range }, isTime, values, series, bands,
// rules, marks, levels (of labels above), height }. The first of `values` are those of x, in seconds where it is time.
// title: what the chart shows, for readers who can't see it; table: an element with its figures.
export async function chart(container, make, { title, table }) {
  const drawing = element("div", { class: "chart", role: "img", "aria-label": title });
  replace(container, drawing, table && element("details", {}, element("summary", {}, "Figures"), table));
  letGo();
  const uPlot = await loaded();
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
  const watch = new ResizeObserver(() => plot.width !== width() && plot.setSize({ width: width(), height: plot.height }));
  watch.observe(drawing);
  shown.set(drawing, () => {
    forget();
    watch.disconnect();
    plot.destroy();
  });
}
