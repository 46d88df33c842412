// What less time costs: the cost-time frontier, with the chosen plan on it.

import { chart } from "../shared/chart.js";
import { element, number, sortable, words } from "../shared/dom.js";
import { duration, rate, usd } from "../shared/format.js";
import { secondary } from "../shared/parts.js";
import { vmCount } from "../answers/parts.js";

export const STEPS = [[172800, 86400, "days"], [7200, 3600, "hours"], [180, 60, "minutes"], [0, 1, "seconds"]];
const named = (point) => (point.relays.length ? `${point.verdict} (${point.relays.join(", ")})` : point.verdict);
const VERDICTS = ["direct", "relay", "split"];

// What leads to a point: a deadline for a faster one, a budget for a cheaper one. The frontier
// knows no limits: a least rate that the point does not reach goes.
export function limitsFor(point, plan) {
  const least = point.throughput_gbps < (plan.request.min_throughput_gbps ?? 0) ? { min_throughput_gbps: "" } : {};
  if (point.duration_s < plan.duration_s * (1 - 1e-6)) return { ...least, deadline_s: String(Math.ceil(point.duration_s * 10) / 10), budget_usd: "" };
  return { ...least, budget_usd: String(Math.ceil(point.cost_usd.total * 100) / 100), deadline_s: "" };
}

function drawn(points, plan, [, size, name], mark) {
  const rows = [...points].sort((a, b) => a.duration_s - b.duration_s);
  const [times, costs] = [rows.map((point) => point.duration_s / size), rows.map((point) => point.cost_usd.total)];
  const chosen = plan.duration_s / size;
  const around = (values, share) => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const room = share * (high - low || high || 1);
    return [Math.max(0, low - room), high + room];
  };
  const across = around([...times, chosen], 0.05);
  // The curve falls ever slower: there is room below it, but above at its left end.
  const side = (chosen - across[0]) / (across[1] - across[0]) < 0.2 ? "right" : "left";
  const wide = Math.max(...costs) - Math.min(...costs) > 12;
  return {
    isStill: true, height: 250,
    x: { title: `Time, ${name}`, range: () => across },
    y: { title: "Cost", range: () => around([...costs, plan.cost_usd.total], 0.12), ticks: (value) => `$${wide ? value.toLocaleString("en-US") : value.toFixed(2)}` },
    values: [times, costs], series: [{ kind: "line", color: "line", width: 1.5 }],
    marks: [
      { x: chosen, y: plan.cost_usd.total, made: element("span", { class: `point chosen ${side}` }, element("b", {}, `chosen: ${plan.verdict}`)) },
      ...points.map((point) => ({ x: point.duration_s / size, y: point.cost_usd.total, made: mark(point) })),
    ],
  };
}

// onPoint(point): a point was chosen; pointAddress(point): where the same leads by a link.
export function frontier(plan, onPoint, pointAddress) {
  const points = plan.frontier;
  const section = (...content) => secondary("frontier", "Cost and time", content);
  if (points.length < 2) {
    return section(element("p", { class: "muted" }, points.length
      ? "One plan is best in both time and cost within these limits." : "The cost-time frontier was not asked for."));
  }
  const start = "Each point is a plan that nothing beats in both. Choose one to plan within its time or cost.";
  const readout = element("p", { class: "readout muted" }, start);
  const say = (text) => () => { readout.textContent = text; };
  function mark(point) {
    const said = `${rate(point.throughput_gbps)} Gbit/s, ${duration(point.duration_s)}, ${usd(point.cost_usd.total)}: ${named(point)}`;
    return element("i", { class: `point ${point.verdict}`, on: { mouseover: say(said), mouseout: say(start), click: () => onPoint(point) } });
  }
  const unit = STEPS.find(([from]) => Math.max(...points.map((point) => point.duration_s)) >= from);
  const table = sortable("The cost-time frontier", [
    words("Verdict", named, (name, point) => element("a", { href: pointAddress(point) }, name)),
    number("Throughput", "throughput_gbps", rate, "Gbit/s"),
    number("Time", "duration_s", duration),
    number("Total", "cost_usd.total", usd),
    number("VMs", ({ vms }) => vmCount(vms)),
  ], points, { order: 2 });
  const holder = element("div", { class: "frontier-chart" });
  // Drawn when it is in the page: its width is the page's.
  queueMicrotask(() => chart(holder, () => drawn(points, plan, unit, mark), {
    title: `Cost against time of ${points.length} plans; the chosen one takes ${duration(plan.duration_s)} and costs ${usd(plan.cost_usd.total)}.`, table,
  }));
  return section(element("p", { class: "legend" },
    VERDICTS.map((verdict) => element("span", {}, element("i", { class: `point ${verdict}` }), verdict))), holder, readout);
}
