// One flow against many against the caps of both VMs, as bars of one scale.

import { chart } from "../shared/chart.js";
import { element } from "../shared/dom.js";
import { figure, perGb } from "../shared/format.js";
import { key } from "./distribution.js";
import { saturating } from "./metrics.js";
import { colour } from "../shared/shell.js";

function rates(pair) {
  const { link, sender, receiver } = pair;
  const flow = link.per_flow_mbps;
  const inGbps = { ...flow, low: flow.low / 1000, expected: flow.expected / 1000, high: flow.high / 1000 };
  return [
    ["One flow", inGbps, "flow"],
    ["Many flows", link.aggregate_gbps, "flow"],
    ["Egress cap, sender", sender.egress_gbps, "cap"],
    ["Ingress cap, receiver", receiver.ingress_gbps, "cap"],
  ].filter(([, estimate]) => estimate);
}

export function ratesPanel(there, back) {
  const drawing = element("div");
  const backwards = new Map(back ? rates(back).map(([name, estimate]) => [name, estimate.expected]) : []);
  const rows = rates(there).map(([name, estimate, kind]) => ({
    name, kind, low: estimate.low, expected: estimate.expected, high: estimate.high, source: estimate.source,
    back: backwards.get(name) ?? null, shown: figure(estimate.expected),
  }));
  const connections = saturating(there.link);
  const fee = there.usd_per_gb === null ? "No egress price is known." : `Each GB costs ${perGb(there.usd_per_gb).replace("/GB", "")} of egress.`;
  const enough = connections === null ? "" : connections === 1 ? "One connection saturates the pair. " : `${connections} connections saturate the pair. `;
  const cell = (text) => element("td", { class: "number" }, text);
  const table = element("table", {},
    element("caption", {}, "Throughput of one VM pair, Gbit/s"),
    element("thead", {}, element("tr", {}, ["", "Expected", "Low", "High", "Reverse"].map((name, at) => element("th", { scope: "col", class: at ? "number" : null }, name)))),
    element("tbody", {}, rows.map((row) => element("tr", {}, element("th", { scope: "row" }, row.name), cell(row.shown), cell(figure(row.low)), cell(figure(row.high)), cell(figure(row.back))))));
  // Throughput and caps differ in colour and in their names.
  const specification = () => ({
    data: { values: rows },
    height: 34 * rows.length,
    encoding: { y: { field: "name", type: "nominal", sort: null, title: null, axis: { labelLimit: 140, ticks: false, domain: false } } },
    layer: [
      { mark: { type: "bar", height: { band: 0.55 } }, encoding: {
        x: { field: "expected", type: "quantitative", title: "Gbit/s", axis: { tickCount: 5 } },
        color: { field: "kind", type: "nominal", legend: null, scale: { domain: ["flow", "cap"], range: [colour("chosen"), colour("cap")] } },
      } },
      { mark: { type: "rule", color: colour("text"), strokeWidth: 1.5 }, encoding: { x: { field: "low", type: "quantitative" }, x2: { field: "high" } } },
      ...(rows.some((row) => Number.isFinite(row.back)) ? [{ mark: { type: "tick", thickness: 3, height: 24, color: colour("relay") },
        transform: [{ filter: "datum.back !== null" }], encoding: { x: { field: "back", type: "quantitative" } } }] : []),
      { mark: { type: "text", align: "left", dx: 5, dy: -11, fontSize: 12, fontWeight: "bold", color: colour("text") },
        encoding: { x: { field: "expected", type: "quantitative" }, text: { field: "shown" } } },
    ],
  });
  chart(drawing, specification, { title: `One flow, many flows and the caps of both VMs in Gbit/s: ${rows.map((row) => `${row.name} ${row.shown}`).join(", ")}`, table });
  return element("section", { class: "panel", id: "rates" }, element("h3", {}, "One flow, many flows, caps"),
    element("p", { class: "legend" }, key("flow", "throughput"), key("cap", "cap of one VM"), key("bound", "low to high"),
      back ? key("back", "reverse direction") : null),
    drawing, element("p", {}, enough, fee));
}
