// The arcs as tables: all that the map shows, for reading, sorting and screen readers.

import { element, sortable } from "../shared/dom.js";
import { mbps, ms, percent, perGb, rate, figure } from "../shared/format.js";
import { pairAddress } from "../shared/pairs.js";
import { AGGREGATE, columnsOf, pathLinks } from "../transfer/figures.js";

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
    `All arcs from ${links[0]?.src ?? "here"}`,
    [
      {
        title: "To",
        value: (link) => link.dst,
        shown: (link) => [link.dst, " ", element("small", { class: "muted" }, cities.get(link.dst) ?? "")],
      },
      ...AGGREGATE,
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
    { order: metric === "per-flow" ? 4 : 1, descending: true, key: (link) => link.dst },
  );
}

// The ways of a plan: what was chosen, and direct and the best relay beside it.
export function waysOf(plan) {
  const ways = plan.paths.map((path) => ({ kind: "chosen", ...path }));
  const taken = (regions) => ways.some((way) => way.regions.join() === regions.join());
  const [direct, relay] = columnsOf(plan);
  const { src, dst } = plan.request;
  if (direct.is && !taken([src, dst])) ways.push({ ...direct.option, kind: "direct", regions: [src, dst] });
  if (relay.is && !taken([src, relay.option.relay, dst]))
    ways.push({ ...relay.option, kind: "best relay", regions: [src, relay.option.relay, dst] });
  return ways;
}

export function wayTable(plan) {
  return sortable(
    "Paths of this plan",
    [
      { title: "Role", value: (way) => way.kind, shown: (way) => element("span", { class: "tag" }, way.kind) },
      { title: "Path", value: (way) => way.regions.join(" "), shown: (way) => pathLinks(way.regions) },
      {
        title: "Throughput",
        unit: "Gbit/s",
        number: true,
        value: (way) => way.throughput_gbps,
        shown: (way) => rate(way.throughput_gbps),
      },
      {
        title: "Share",
        number: true,
        value: (way) => way.share,
        shown: (way) => percent(way.share === undefined ? undefined : 100 * way.share),
      },
      { title: "Round trip", number: true, value: (way) => way.rtt_ms, shown: (way) => ms(way.rtt_ms) },
      { title: "Egress", number: true, value: (way) => fee(way, plan), shown: (way) => perGb(fee(way, plan)) },
    ],
    waysOf(plan),
    { order: 2, descending: true },
  );
}

const fee = (way, plan) => way.egress_usd_per_gb ?? way.cost_usd.egress / plan.request.volume_gb;

// The arcs that the map draws.
export function linkArcs(links, metric) {
  const isFlow = metric === "per-flow";
  return links.map((link) => {
    const figures = isFlow ? link.per_flow_mbps : link.aggregate_gbps;
    const shown = isFlow ? mbps(figures.expected) : `${rate(figures.expected)} Gbit/s`;
    return {
      src: link.src,
      dst: link.dst,
      rate: figures.expected,
      kind: figures.source,
      said: `${link.src} to ${link.dst}: ${shown} (${figure(figures.low)} to ${figure(figures.high)}), round trip ${ms(link.rtt_ms.expected)}, ${figures.source}`,
    };
  });
}

export function wayArcs(plan) {
  return waysOf(plan).flatMap((way) =>
    way.regions.slice(1).map((dst, at) => ({
      src: way.regions[at],
      dst,
      rate: way.throughput_gbps,
      kind: way.kind,
      said: `${way.kind}: ${way.regions.join(" to ")}, ${rate(way.throughput_gbps)} Gbit/s, round trip ${ms(way.rtt_ms)}`,
    })),
  );
}
