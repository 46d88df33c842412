// What less time costs: the cost-time frontier, with the chosen plan on it.

import { chart } from "../shared/chart.js";
import { element, sortable } from "../shared/dom.js";
import { duration, rate, usd } from "../shared/format.js";
import { colour } from "../shared/shell.js";

const STEPS = [
  [172800, 86400, "days"],
  [7200, 3600, "hours"],
  [180, 60, "minutes"],
  [0, 1, "seconds"],
];
const named = (point) => (point.relays.length ? `${point.verdict} (${point.relays.join(", ")})` : point.verdict);

// What leads to a point: a deadline for a faster one, a budget for a cheaper one. The frontier
// knows no limits: a least rate that the point does not reach goes.
export function limitsFor(point, plan) {
  const least = point.throughput_gbps < (plan.request.min_throughput_gbps ?? 0) ? { min_throughput_gbps: "" } : {};
  if (point.duration_s < plan.duration_s * (1 - 1e-6))
    return { ...least, deadline_s: String(Math.ceil(point.duration_s * 10) / 10), budget_usd: "" };
  return { ...least, budget_usd: String(Math.ceil(point.cost_usd.total * 100) / 100), deadline_s: "" };
}

function specification(points, plan, unit) {
  const [, size, name] = unit;
  const rows = points.map((point, at) => ({
    at,
    time: point.duration_s / size,
    cost: point.cost_usd.total,
    verdict: point.verdict,
    said: `${rate(point.throughput_gbps)} Gbit/s, ${duration(point.duration_s)}, ${usd(point.cost_usd.total)}: ${named(point)}`,
  }));
  const [times, costs] = [rows.map((row) => row.time), rows.map((row) => row.cost)];
  const spread = (values) => Math.max(...values) - Math.min(...values);
  const place = (plan.duration_s / size - Math.min(...times)) / spread(times);
  const chosen = { time: plan.duration_s / size, cost: plan.cost_usd.total, label: `chosen: ${plan.verdict}` };
  const x = {
    field: "time",
    type: "quantitative",
    title: `Time, ${name}`,
    scale: { domain: [Math.max(0, Math.min(...times) - 0.05 * spread(times)), Math.max(...times) + 0.05 * spread(times)], nice: false },
    axis: { tickCount: 8 },
  };
  const y = {
    field: "cost",
    type: "quantitative",
    title: "Cost, $",
    scale: { zero: false, padding: 36 },
    axis: { format: spread(costs) > 12 ? "$,.0f" : "$,.2f", tickCount: 6 },
  };
  return {
    height: 300,
    layer: [
      {
        data: { values: rows },
        mark: { type: "line", color: colour("line"), strokeWidth: 1.5, interpolate: "linear" },
        encoding: { x, y, order: { field: "time" } },
      },
      {
        data: { values: rows },
        mark: { type: "point", filled: true, size: 90, cursor: "pointer", opacity: 1 },
        encoding: {
          x,
          y,
          tooltip: { field: "said" },
          shape: {
            field: "verdict",
            type: "nominal",
            title: "Verdict",
            scale: { domain: ["direct", "relay", "split"], range: ["square", "triangle-up", "circle"] },
            legend: { orient: "top", direction: "horizontal" },
          },
          color: {
            field: "verdict",
            type: "nominal",
            title: "Verdict",
            scale: { domain: ["direct", "relay", "split"], range: [colour("direct"), colour("relay"), colour("cap")] },
          },
        },
      },
      {
        data: { values: [chosen] },
        mark: {
          type: "point",
          shape: "diamond",
          size: 420,
          filled: false,
          strokeWidth: 3,
          color: colour("chosen"),
          opacity: 1,
        },
        encoding: { x, y },
      },
      {
        data: { values: [chosen] }, // The curve falls ever slower: there is room below it, but above at its left end.
        mark: {
          type: "text",
          dy: place < 0.2 ? -22 : 22,
          align: place < 0.2 ? "left" : "right",
          fontWeight: "bold",
          fontSize: 13,
          color: colour("text"),
        },
        encoding: { x, y, text: { field: "label" } },
      },
    ],
  };
}

// onPoint(point): a point was chosen; pointAddress(point): where the same leads by a link.
export function frontier(plan, onPoint, pointAddress) {
  const points = plan.frontier;
  const heading = element("h2", { id: "frontier" }, "Cost and time");
  const section = element("section", { class: "panel wide", "aria-labelledby": "frontier" }, heading);
  if (points.length < 2) {
    section.append(
      element(
        "p",
        { class: "muted" },
        points.length
          ? "One plan is best in both time and cost within these limits."
          : "The cost-time frontier was not asked for.",
      ),
    );
    return section;
  }
  const readout = element(
    "p",
    { class: "readout muted" },
    "Each point is a plan that nothing beats in both. Choose one to plan within its time or cost.",
  );
  const unit = STEPS.find(([from]) => Math.max(...points.map((point) => point.duration_s)) >= from);
  const table = sortable(
    "The cost-time frontier",
    [
      { title: "Verdict", value: named, shown: (point) => element("a", { href: pointAddress(point) }, named(point)) },
      {
        title: "Throughput",
        unit: "Gbit/s",
        number: true,
        value: (point) => point.throughput_gbps,
        shown: (point) => rate(point.throughput_gbps),
      },
      { title: "Time", number: true, value: (point) => point.duration_s, shown: (point) => duration(point.duration_s) },
      {
        title: "Total",
        number: true,
        value: (point) => point.cost_usd.total,
        shown: (point) => usd(point.cost_usd.total),
      },
      { title: "VMs", number: true, value: (point) => Object.values(point.vms).reduce((sum, count) => sum + count, 0) },
    ],
    points,
    { order: 2 },
  );
  const holder = element("div", { class: "frontier-chart" });
  section.append(holder, readout);
  const start = readout.textContent;
  // Drawn when it is in the page: its width is the page's.
  queueMicrotask(() =>
    chart(holder, () => specification(points, plan, unit), {
      title: `Cost against time of ${points.length} plans; the chosen one takes ${duration(plan.duration_s)} and costs ${usd(plan.cost_usd.total)}.`,
      table,
      ready: (view) => {
        const pointOf = (item) =>
          item?.mark?.marktype === "symbol" && item.datum?.said ? points[item.datum.at] : null;
        view.addEventListener("click", (event, item) => pointOf(item) && onPoint(pointOf(item)));
        view.addEventListener("mouseover", (event, item) => {
          if (pointOf(item)) readout.textContent = item.datum.said;
        });
        view.addEventListener("mouseout", () => {
          readout.textContent = start;
        });
      },
    }),
  );
  return section;
}
