// Direct, the best relay and the chosen plan, side by side.

import { breakable, element, scrolling } from "../shared/dom.js";
import { duration, figure, ms, rate, times, usd } from "../shared/format.js";
import { columnsOf } from "./figures.js";

function bar(option, most, kind) {
  const range = element("span", { class: "range" });
  const fill = element("span", { class: "fill" });
  const share = (value) => `${(100 * (value ?? option.throughput_gbps)) / most}%`;
  fill.style.width = share(option.throughput_gbps);
  range.style.left = share(option.throughput_gbps_low);
  range.style.right = `calc(100% - ${share(option.throughput_gbps_high)})`;
  return element("div", { class: `rate-bar rate-bar-${kind}`, "aria-hidden": "true" }, fill, range);
}

export function comparison(plan) {
  const columns = columnsOf(plan);
  const most = Math.max(
    ...columns.filter((column) => column.is).map(({ option }) => option.throughput_gbps_high ?? option.throughput_gbps),
  );
  const direct = plan.direct.throughput_gbps === null ? null : plan.direct;
  const ratio = (value, of) => (of ? times(value / of) : "–");
  const rows = [
    ["Throughput", ({ option, kind }) => [`${rate(option.throughput_gbps)} Gbit/s`, bar(option, most, kind)]],
    ["Bounds", ({ option }) => `${rate(option.throughput_gbps_low)} to ${rate(option.throughput_gbps_high)}`],
    ["Speed, direct = 1", ({ option }) => ratio(option.throughput_gbps, direct?.throughput_gbps)],
    ["Time", ({ option }) => duration(option.duration_s)],
    ["Egress fees", ({ option }) => usd(option.cost_usd.egress)],
    ["VM cost", ({ option }) => usd(option.cost_usd.vm)],
    ["Total cost", ({ option }) => element("strong", {}, usd(option.cost_usd.total))],
    ["Cost, direct = 1", ({ option }) => ratio(option.cost_usd.total, direct?.cost_usd.total)],
    ["Round trip", ({ option }) => ms(option.rtt_ms)],
    ["Relays", ({ relays }) => (relays.length ? relays.map((relay) => element("div", {}, breakable(relay))) : "none")],
    ["Connections", ({ option }) => [option.connections].flat().map(figure).join(" + ")],
    [
      "VMs",
      ({ option }) =>
        Object.entries(option.vms ?? {}).map(([region, count]) =>
          element("div", {}, `${count} at `, breakable(region)),
        ),
    ],
  ];
  const notes = columns
    .filter((column) => column.note)
    .map((column) => element("p", { class: "muted" }, `${column.title}: ${column.note}`));
  return element(
    "section",
    { class: "panel", "aria-labelledby": "compared" },
    element("h2", { id: "compared" }, "Side by side"),
    scrolling(
      "Direct, best relay and chosen",
      element(
        "table",
        { class: "compared", role: "table" },
        element(
          "thead",
          { role: "rowgroup" },
          element(
            "tr",
            { role: "row" },
            element("td", { role: "cell" }),
            columns.map((column) => element("th", { scope: "col", role: "columnheader", class: `number ${column.kind}` }, column.title)),
          ),
        ),
        element(
          "tbody",
          { role: "rowgroup" },
          rows.map(([name, shown]) =>
            element(
              "tr",
              { role: "row" },
              element("th", { scope: "row", role: "rowheader" }, name),
              columns.map((column) =>
                element("td", { role: "cell", class: `number ${column.kind}` }, column.is ? shown(column) : "–"),
              ),
            ),
          ),
        ),
      ),
    ),
    notes,
  );
}
