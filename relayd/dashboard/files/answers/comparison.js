// Which region, with which VM, serves a use best.

import { band } from "../shared/band.js";
import { element, sortable } from "../shared/dom.js";
import { count, duration, figure, ms, percent, rate, usd, volume } from "../shared/format.js";
import { tag } from "../shared/parts.js";
import { advice, basis, costOf, panel, range, timeOf, widePanel } from "./parts.js";
import { verdictPanel } from "./verdict.js";

const named = ({ region, vm_type: type }) => (type ? `${region} with ${type}` : region);
export const spoken = ({ candidates: [best] }) => named(best);

const slowest = (plan) => Math.max(...plan.candidates.map((each) => each.duration_s_high));
const bounds = (each) => range(each.duration_s_low, each.duration_s_high, duration);
const candidates = (plan) => widePanel("candidates", "Candidates", sortable(`The best ${plan.candidates.length} of ${count(plan.compared)}`, [
  { title: "Rank", number: true, value: (each) => each.rank, shown: (each) => (each.rank_low === each.rank_high ? String(each.rank) : `${each.rank} (${each.rank_low} to ${each.rank_high})`) },
  { title: "Region", value: (each) => each.region },
  { title: "VM type", value: (each) => each.vm_type ?? "–" },
  { title: "Throughput", unit: "Gbit/s", number: true, value: (each) => each.throughput_gbps, shown: (each) => rate(each.throughput_gbps) },
  { title: "Time", number: true, value: (each) => each.duration_s, 
    shown: (each) => [element("div", {}, duration(each.duration_s)), element("small", { class: "muted" }, bounds(each)),
      band({ low: each.duration_s_low, expected: each.duration_s, high: each.duration_s_high }, slowest(plan), `Time, ${bounds(each)}`, { width: 90 })] },
  { title: "Total", number: true, value: (each) => each.cost_usd.total, shown: (each) => usd(each.cost_usd.total) },
  { title: "Round trip", number: true, value: (each) => each.rtt_ms, shown: (each) => ms(each.rtt_ms) },
  { title: "For a dollar", unit: "GB", number: true, value: (each) => each.gb_per_usd, shown: (each) => figure(each.gb_per_usd) },
  { title: "Best in", number: true, value: (each) => each.probability, shown: (each) => percent(100 * each.probability) },
  { title: "Rests on", value: (each) => each.source, shown: (each) => tag(each.source, "") },
], plan.candidates));

const providers = (plan) => panel("providers", "The best of each provider", sortable("Providers", [
  { title: "Provider", value: (each) => each.provider },
  { title: "Candidate", value: named },
  { title: "Rank", number: true, value: (each) => each.rank },
], plan.providers, { order: 2 }));

export function shown(plan, { commands }) {
  const [best] = plan.candidates;
  const { direction, volume_gb: gb, regions } = plan.request;
  return {
    head: verdictPanel(plan, {
      kind: "direct", mark: "①", title: spoken(plan), ends: `${volume(gb)} ${direction} ${regions.join(", ")}`,
      headline: [["Throughput", `${rate(best.throughput_gbps)} Gbit/s`, best.limit], timeOf(best), costOf(best), ["Compared", count(plan.compared), "regions and VM types"]],
    }),
    body: [candidates(plan), providers(plan), element("div", { class: "stack" }, advice(plan), commands), basis(plan)],
  };
}
