// What a plan says, in figures and tables that several parts of pages show.

import { bounded } from "../shared/band.js";
import { element, number, sortable, words } from "../shared/dom.js";
import { figure, ms, percent, perGb, rate } from "../shared/format.js";
import { pairAddress } from "../shared/pairs.js";
import { small } from "../shared/parts.js";

export const relaysOf = (plan) => plan.paths.filter((path) => path.regions.length === 3).map((path) => path.regions[1]);
export const hasDirect = (plan) => plan.paths.some((path) => path.regions.length === 2);

export function verdictText(plan) {
  const relays = relaysOf(plan);
  if (plan.verdict === "direct") return "Send it direct";
  if (plan.verdict === "relay") return `Relay it through ${relays[0]}`;
  const over = hasDirect(plan) ? ["the direct path", ...relays] : relays;
  return `Split it over ${over.join(over.length === 2 ? " and " : ", ")}`;
}

// The chosen plan with the figures that single candidates have.
export function chosenOption(plan) {
  const { direct, paths: used } = plan;
  return {
    ...plan,
    relays: relaysOf(plan),
    rtt_ms: Math.max(...used.map((path) => path.rtt_ms)),
    connections: used.map((path) => path.connections),
    gain: direct.throughput_gbps ? plan.throughput_gbps / direct.throughput_gbps : null,
    gain_low: direct.throughput_gbps_high ? plan.throughput_gbps_low / direct.throughput_gbps_high : null,
    cost_ratio: direct.cost_usd ? plan.cost_usd.total / direct.cost_usd.total : null,
  };
}

// Links of a path, from end to end.
export const linksAlong = (regions) => regions.slice(1).map((region, at) => [regions[at], region]);

// A path with links to what is known of each of its links.
export function pathLinks(regions) {
  const name = (region) => element("span", { class: "name" }, region);
  const arrow = ([src, dst]) => element("a", { href: pairAddress(src, dst), "aria-label": `to, by the pair ${src} to ${dst}` }, "→");
  return [name(regions[0]), linksAlong(regions).map((link) => [" ", arrow(link), " ", name(link[1])])];
}

// Each link once, of the direct path and of those chosen.
export function linksOf(plan) {
  const links = [[plan.request.src, plan.request.dst], ...plan.paths.flatMap(({ regions }) => linksAlong(regions))];
  return [...new Map(links.map((link) => [link.join(" "), link])).values()];
}

// Columns of a table of links, as /v1/links shows them: what one VM pair reaches, on one scale.
export function rateColumns(links) {
  const most = Math.max(...links.map((link) => link.aggregate_gbps.high));
  return [
    number("One VM pair", "aggregate_gbps.expected", rate, "Gbit/s"),
    number("Bounds", ({ aggregate_gbps: { low, high } }) => high - low,
      (_, { aggregate_gbps: estimate }) => bounded(estimate, "One VM pair, Gbit/s", rate, { most, width: 90 })),
  ];
}

// The paths of a plan: those chosen, and direct and the best relay beside.
function shownPaths(plan) {
  const { direct, best_relay: best, request: { src, dst } } = plan;
  const shown = plan.paths.map((path) => ({ kind: "chosen", ...path }));
  const others = [
    direct.throughput_gbps !== null && { ...direct, kind: "direct", regions: [src, dst] },
    best && { ...best, kind: "best relay", regions: [src, best.relay, dst] },
  ];
  const isNew = (path) => path && shown.every((other) => other.regions.join() !== path.regions.join());
  return [...shown, ...others.filter(isNew)].map((path) => ({
    ...path, usd_per_gb: path.egress_usd_per_gb ?? path.cost_usd.egress / plan.request.volume_gb,
  }));
}

function privateNote({ addresses = [] }) {
  const own = addresses.filter((kind) => kind === "private").length;
  return own > 0 && small(own === addresses.length ? " over private addresses" : " over private and public addresses");
}

export const pathTable = (plan) => sortable("An arrow leads to what is known of that pair.", [
  words("Role", "kind", (kind) => element("span", { class: "tag" }, kind)),
  words("Path", (path) => path.regions.join(" "), (_, path) => element("span", {}, pathLinks(path.regions), privateNote(path))),
  number("Throughput", "throughput_gbps", rate, "Gbit/s"),
  number("Share", "share", (share) => (share === undefined ? "" : percent(100 * share))),
  number("Connections", "connections", (opened) => [opened].flat().map(figure).join(" + ")),
  number("Round trip", "rtt_ms", ms),
  number("Egress", "usd_per_gb", perGb),
  words("Limited by", "bottleneck"),
], shownPaths(plan), { order: 2, descending: true });

// A place's name on a map.
export const placeOf = (region) => [region.id, region.city].filter(Boolean).join(", ");

// What the shared map shows of a plan; regions: of /v1/regions.
export function planOnMap(plan, regions) {
  const { src: first, dst: last } = plan.request;
  const lines = shownPaths(plan).flatMap((path) => linksAlong(path.regions).map(([src, dst]) => ({
    src, dst, kind: path.kind, thickness: path.throughput_gbps,
    values: { aggregate: path.throughput_gbps, rtt: path.rtt_ms, fee: path.usd_per_gb },
    said: `${path.kind}: ${path.regions.join(" to ")}, ${rate(path.throughput_gbps)} Gbit/s, round trip ${ms(path.rtt_ms)}`,
  })));
  return {
    regions, lines, kindTitle: "Path", said: placeOf,
    marked: [...new Set([first, last, ...lines.flatMap((line) => [line.src, line.dst])])],
    label: `Map of ${verdictText(plan).toLowerCase()}, ${first} to ${last}: ${lines.length} links`,
  };
}
