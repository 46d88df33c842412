// The paths of a plan, as tables and the map show them: those chosen, and direct and the best relay beside.

import { ms, rate } from "../shared/format.js";
import { columnsOf } from "./figures.js";

export function shownPaths(plan) {
  const shown = plan.paths.map((path) => ({ kind: "chosen", ...path }));
  const taken = (regions) => shown.some((path) => path.regions.join() === regions.join());
  const [direct, relay] = columnsOf(plan);
  const { src, dst } = plan.request;
  if (direct.is && !taken([src, dst])) shown.push({ ...direct.option, kind: "direct", regions: [src, dst] });
  if (relay.is && !taken([src, relay.option.relay, dst]))
    shown.push({ ...relay.option, kind: "best relay", regions: [src, relay.option.relay, dst] });
  return shown;
}

export const feeOf = (path, plan) => path.egress_usd_per_gb ?? path.cost_usd.egress / plan.request.volume_gb;

export function pathLines(plan) {
  return shownPaths(plan).flatMap((path) => path.regions.slice(1).map((dst, at) => ({
    src: path.regions[at],
    dst,
    thickness: path.throughput_gbps,
    values: { aggregate: path.throughput_gbps, rtt: path.rtt_ms, fee: feeOf(path, plan) },
    kind: path.kind,
    said: `${path.kind}: ${path.regions.join(" to ")}, ${rate(path.throughput_gbps)} Gbit/s, round trip ${ms(path.rtt_ms)}`,
  })));
}

// What the shared map shows of a plan; regions: of /v1/regions.
export function planOnMap(plan, regions, what) {
  const lines = pathLines(plan);
  return {
    regions, lines, kindTitle: "Path", said: (region) => [region.id, region.city].filter(Boolean).join(", "),
    marked: [...new Set([plan.request.src, plan.request.dst, ...lines.flatMap((line) => [line.src, line.dst])])],
    label: `Map of ${what}, ${plan.request.src} to ${plan.request.dst}: ${lines.length} links`,
  };
}
