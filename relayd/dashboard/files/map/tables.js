// The lines as tables: all that the map shows, for reading, sorting and screen readers.

import { element, sortable } from "../shared/dom.js";
import { figure, ms, percent, perGb, rate } from "../shared/format.js";
import { pairAddress } from "../shared/pairs.js";
import { aggregate, pathLinks } from "../transfer/figures.js";
import { feeOf, shownPaths } from "../transfer/paths.js";

const leads = (row, planned) =>
  element(
    "span",
    { class: "row-links" },
    element("a", { href: pairAddress(row.src, row.dst), "aria-label": `Pair ${row.src} to ${row.dst}` }, "pair"),
    " ",
    element("a", { href: planned, "aria-label": `Plan ${row.src} to ${row.dst}` }, "plan"),
  );

// links: of /v1/links, all from one source; cities: region to its city.
export function linkTable(links, cities, planAddress, metric) {
  return sortable(
    `All links from ${links[0]?.src ?? "here"}`,
    [
      {
        title: "To",
        value: (link) => link.dst,
        shown: (link) => [link.dst, " ", element("small", { class: "muted" }, cities.get(link.dst) ?? "")],
      },
      ...aggregate(links),
      { title: "Source", value: (link) => link.aggregate_gbps.source },
      {
        title: "Per flow",
        unit: "Mbit/s",
        number: true,
        value: (link) => link.per_flow_mbps.expected,
        shown: (link) => figure(link.per_flow_mbps.expected),
      },
      {
        title: "Round trip",
        unit: "ms",
        number: true,
        value: (link) => link.rtt_ms.expected,
        shown: (link) => link.rtt_ms.expected.toFixed(1),
      },
      { title: "Leads to", value: (link) => link.dst, shown: (link) => leads(link, planAddress(link.src, link.dst)) },
    ],
    links,
    { order: { "per-flow": 4, rtt: 5 }[metric] ?? 1, descending: metric !== "rtt", key: (link) => link.dst },
  );
}

export function pathTable(plan) {
  return sortable(
    "Paths of this plan",
    [
      { title: "Role", value: (path) => path.kind, shown: (path) => element("span", { class: "tag" }, path.kind) },
      { title: "Path", value: (path) => path.regions.join(" "), shown: (path) => pathLinks(path.regions) },
      {
        title: "Throughput",
        unit: "Gbit/s",
        number: true,
        value: (path) => path.throughput_gbps,
        shown: (path) => rate(path.throughput_gbps),
      },
      {
        title: "Share",
        number: true,
        value: (path) => path.share,
        shown: (path) => percent(path.share === undefined ? undefined : 100 * path.share),
      },
      { title: "Round trip", number: true, value: (path) => path.rtt_ms, shown: (path) => ms(path.rtt_ms) },
      { title: "Egress", number: true, value: (path) => feeOf(path, plan), shown: (path) => perGb(feeOf(path, plan)) },
    ],
    shownPaths(plan),
    { order: 2, descending: true },
  );
}
