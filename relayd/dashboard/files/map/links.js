// The links of a source as lines of the map: so many of them that each can be told from the others.

import { figure, mbps, ms, rate } from "../shared/format.js";
import { METRICS } from "../shared/metrics.js";

const FEW = 20;
export const SHOWN = { best: `${FEW} best`, worst: `${FEW} worst`, all: "all" };

// links: of /v1/links, all from one source.
export function linkLines(links, metric) {
  const isFlow = metric === "per-flow";
  return links.map((link) => {
    const figures = isFlow ? link.per_flow_mbps : link.aggregate_gbps;
    const shown = isFlow ? mbps(figures.expected) : `${rate(figures.expected)} Gbit/s`;
    return {
      src: link.src,
      dst: link.dst,
      thickness: figures.expected,
      values: { "per-flow": link.per_flow_mbps.expected, aggregate: link.aggregate_gbps.expected, rtt: link.rtt_ms.expected, loss: link.loss_pct },
      kind: figures.source,
      said: `${link.src} to ${link.dst}: ${shown} (${figure(figures.low)} to ${figure(figures.high)}), round trip ${ms(link.rtt_ms.expected)}, ${figures.source}`,
    };
  });
}

// The best or the worst by a metric; those that it is not known of come last.
export function fewest(lines, metric, shown) {
  if (shown === "all" || lines.length <= FEW) return lines;
  const sign = (METRICS[metric].isLess ? 1 : -1) * (shown === "worst" ? -1 : 1);
  const value = (line) => (line.values[metric] === null ? Infinity : sign * line.values[metric]);
  return [...lines].sort((a, b) => value(a) - value(b) || a.dst.localeCompare(b.dst)).slice(0, FEW);
}
