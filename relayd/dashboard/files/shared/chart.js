// Draws charts by Vega-Lite, whose bundle is loaded when the first one is wanted. The interpreter
// in place of `eval` keeps the content-security policy strict. Every chart has its figures as a
// table below it: for screen readers, for copying, and where the bundle is not installed.

import { element, replace } from "./dom.js";
import { colour, onTheme } from "./shell.js";

let bundle = null;
function loaded() {
  bundle ??= import("../charts.js").then(() => globalThis.relaydCharts).catch(() => null);
  return bundle;
}

function themed() {
  const [text, muted, faint] = [colour("text"), colour("muted"), colour("faint")];
  return {
    background: null, font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: { labelColor: muted, titleColor: text, gridColor: faint, domainColor: muted, tickColor: muted, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" },
    legend: { labelColor: text, titleColor: text, labelFontSize: 12, titleFontSize: 12 },
    text: { fill: text }, header: { labelColor: text, titleColor: text },
  };
}

// Charts that were replaced are let go, with their views.
const shown = new Map();
function letGo() {
  for (const [drawing, end] of shown) {
    if (drawing.isConnected) continue;
    end();
    shown.delete(drawing);
  }
}

// specification: a Vega-Lite document, or a function that returns one with today's colours.
// title: what the chart shows, for readers who can't see it; table: an element with its figures.
// ready: called with the Vega view each time it is drawn.
export async function chart(container, specification, { title, table, ready = () => {} }) {
  const drawing = element("div", { class: "chart", role: "img", "aria-label": title });
  const details = table && element("details", {}, element("summary", {}, "Figures"), table);
  replace(container, drawing, details);
  letGo();
  const charts = await loaded();
  if (!charts) {
    replace(drawing, element("p", { class: "muted" }, "Charts need the extra: pip install 'relayd[report]'. The figures are below."));
    if (details) details.open = true;
    return;
  }
  let view = null;
  async function draw() {
    const spec = typeof specification === "function" ? specification() : specification;
    const config = { ...themed(), ...spec.config };
    view?.finalize();
    const embedded = await charts.vegaEmbed(drawing, { autosize: { type: "fit-x", contains: "padding" }, width: "container", ...spec, config },
      { actions: false, renderer: "svg", ast: true, defaultStyle: false, tooltip: false });
    view = embedded;
    // The container is the image and has the title: marks named one by one would only be noise.
    drawing.querySelector("svg")?.setAttribute("aria-hidden", "true");
    ready(embedded.view);
  }
  await draw();
  const forget = onTheme(draw);
  shown.set(drawing, () => {
    forget();
    view?.finalize();
  });
}
