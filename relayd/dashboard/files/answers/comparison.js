// Which region, with which VM, serves a use best.

import { bounded } from "../shared/band.js";
import { element, number, sortable, words } from "../shared/dom.js";
import { count, duration, figure, ms, percent, rate, usd, volume } from "../shared/format.js";
import { panel, small, tag, widePanel } from "../shared/parts.js";
import { advice, basis, costOf, timeOf, timesOf, verdictPanel } from "./parts.js";

const named = ({ region, vm_type: type }) => (type ? `${region} with ${type}` : region);
export const spoken = ({ candidates: [best] }) => named(best);

function candidates(plan) {
  const most = Math.max(...plan.candidates.map((each) => each.duration_s_high));
  return widePanel("candidates", "Candidates", sortable(`The best ${plan.candidates.length} of ${count(plan.compared)}`, [
    number("Rank", "rank", (rank, { rank_low: low, rank_high: high }) => (low === high ? rank : `${rank} (${low} to ${high})`)),
    words("Region", "region"),
    words("VM type", (each) => each.vm_type ?? "–"),
    number("Throughput", "throughput_gbps", rate, "Gbit/s"),
    number("Time", "duration_s", (time_s, each) => [element("div", {}, duration(time_s)),
      small(bounded(timesOf(each), "Time", duration, { most, width: 90 }))]),
    number("Total", "cost_usd.total", usd),
    number("Round trip", "rtt_ms", ms),
    number("For a dollar", "gb_per_usd", figure, "GB"),
    number("Best in", "probability", (share) => percent(100 * share)),
    words("Rests on", "source", (source) => tag(source, "")),
  ], plan.candidates));
}

const providers = (plan) => panel("providers", "The best of each provider", sortable("Providers", [
  words("Provider", "provider"), words("Candidate", named), number("Rank", "rank"),
], plan.providers, { order: 2 }));

export function shown(plan, { commands }) {
  const [best] = plan.candidates;
  const { direction, volume_gb: gb, regions } = plan.request;
  return {
    head: verdictPanel(plan, {
      kind: "direct", mark: "①", title: spoken(plan), ends: `${volume(gb)} ${direction} ${regions.join(", ")}`,
      headline: [["Throughput", `${rate(best.throughput_gbps)} Gbit/s`, best.limit], timeOf(best), costOf(best),
        ["Compared", count(plan.compared), "regions and VM types"]],
    }),
    body: [candidates(plan), providers(plan), element("div", { class: "stack" }, advice(plan), commands), basis(plan)],
  };
}
