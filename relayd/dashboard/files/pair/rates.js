// One flow against many against the caps of both VMs, on one scale.

import { band } from "../shared/band.js";
import { element, scrolling } from "../shared/dom.js";
import { figure, perGb } from "../shared/format.js";
import { key } from "./distribution.js";
import { saturating } from "./metrics.js";

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
  const backwards = new Map(back ? rates(back).map(([name, estimate]) => [name, estimate.expected]) : []);
  const rows = rates(there);
  const most = Math.max(...rows.map(([name, { high }]) => Math.max(high, backwards.get(name) ?? 0)));
  const connections = saturating(there.link);
  const fee = there.usd_per_gb === null ? "No egress price is known." : `Each GB costs ${perGb(there.usd_per_gb).replace("/GB", "")} of egress.`;
  const enough = connections === null ? "" : connections === 1 ? "One connection saturates the pair. " : `${connections} connections saturate the pair. `;
  const cell = (value) => element("td", { class: "number" }, value);
  const line = ([name, estimate, kind]) => {
    const [low, high] = [figure(estimate.low), figure(estimate.high)];
    const drawn = band(estimate, most, `${name}: ${figure(estimate.expected)}, ${low} to ${high} Gbit/s`, { reference: backwards.get(name) ?? null });
    drawn.classList.add(kind);
    return element("tr", {}, element("th", { scope: "row" }, name, drawn), cell(figure(estimate.expected)), cell(low), cell(high), cell(figure(backwards.get(name) ?? null)));
  };
  const table = element("table", {}, element("caption", {}, "Throughput of one VM pair, Gbit/s"),
    element("thead", {}, element("tr", {}, ["", "Expected", "Low", "High", "Reverse"].map((name, at) => element("th", { scope: "col", class: at ? "number" : null }, name)))),
    element("tbody", {}, rows.map(line)));
  return element("section", { class: "panel", id: "rates" }, element("h3", {}, "One flow, many flows, caps"),
    element("p", { class: "legend" }, key("flow", "throughput"), key("cap", "cap of one VM"), back ? key("back", "reverse direction") : null),
    scrolling("Throughput and caps", table), element("p", {}, enough, fee));
}
