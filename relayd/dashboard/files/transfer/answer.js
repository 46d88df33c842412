// A transfer's plan in short: what to do and why.

import { duration, usd, volume } from "../shared/format.js";
import { throughputOf } from "../answers/parts.js";
import { verdictPanel } from "../answers/verdict.js";
import { verdictText } from "./figures.js";

const listed = (vms) =>
  Object.entries(vms)
    .map(([region, count]) => `${count} at ${region}`)
    .join(", ");

const MARKS = { direct: "→", relay: "⤼", split: "⇉" };

export function verdict(plan) {
  const headline = [
    throughputOf(plan),
    ["Time", duration(plan.duration_s), `for ${volume(plan.request.volume_gb)}`],
    ["Cost", usd(plan.cost_usd.total), `${usd(plan.cost_usd.egress)} egress, ${usd(plan.cost_usd.vm)} VMs`],
    ["VMs", String(Object.values(plan.vms).reduce((sum, count) => sum + count, 0)), listed(plan.vms)],
  ];
  return verdictPanel(plan, {
    kind: plan.verdict,
    ends: `${plan.request.src} → ${plan.request.dst}, ${volume(plan.request.volume_gb)}`,
    mark: MARKS[plan.verdict],
    title: verdictText(plan),
    headline,
  });
}
