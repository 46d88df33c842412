// The paths of a plan, as tables and the map show them: those chosen, and direct and the best relay beside.

import { ms, rate } from "../shared/format.js";
import { columnsOf } from "./figures.js";

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

export const feeOf = (way, plan) => way.egress_usd_per_gb ?? way.cost_usd.egress / plan.request.volume_gb;

export function wayLines(plan) {
  return waysOf(plan).flatMap((way) => way.regions.slice(1).map((dst, at) => ({
    src: way.regions[at],
    dst,
    thickness: way.throughput_gbps,
    values: { aggregate: way.throughput_gbps, rtt: way.rtt_ms, fee: feeOf(way, plan) },
    kind: way.kind,
    said: `${way.kind}: ${way.regions.join(" to ")}, ${rate(way.throughput_gbps)} Gbit/s, round trip ${ms(way.rtt_ms)}`,
  })));
}

// What the shared map shows of a plan; regions: of /v1/regions.
export function planOnMap(plan, regions, what) {
  const lines = wayLines(plan);
  return {
    regions, lines, kindTitle: "Path", said: (region) => [region.id, region.city].filter(Boolean).join(", "),
    marked: [...new Set([plan.request.src, plan.request.dst, ...lines.flatMap((line) => [line.src, line.dst])])],
    label: `Map of ${what}, ${plan.request.src} to ${plan.request.dst}: ${lines.length} links`,
  };
}
