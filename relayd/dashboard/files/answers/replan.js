// Whether to keep to a plan in progress.

import { element, facts } from "../shared/dom.js";
import { duration, range, rate, times, usd, volume } from "../shared/format.js";
import { panel } from "../shared/parts.js";
import { advice, basis, costOf, sideBySide, verdictPanel, vmsAt } from "./parts.js";

export const spoken = ({ verdict }) => (verdict === "keep" ? "Keep to the plan" : "Change the plan");

const taken = ({ cost_of_change: change, gain, needed_gain: needed }) => panel("change", "What changing takes", change ? facts([
  ["VMs to start", vmsAt(change.vms_to_start) || "none"], ["VMs to stop", vmsAt(change.vms_to_stop) || "none"],
  ["Until they run", duration(change.wait_s)], ["Getting up to speed", duration(change.ramp_up_s)], ["Cost", usd(change.usd)],
  ["Gain", `${times(gain.expected)} (${range(gain.low, gain.high, times)}); ${times(needed)} at the low bound are needed`],
]) : element("p", { class: "muted" }, "There is no other plan to change to."));

export function shown(plan, { commands }) {
  const best = plan[plan.verdict] ?? plan.change;
  const planned = plan.planned_gbps === null ? "" : `${rate(plan.planned_gbps)} Gbit/s were planned`;
  return {
    head: verdictPanel(plan, {
      kind: plan.verdict === "keep" ? "direct" : "relay", mark: plan.verdict === "keep" ? "●" : "↻", title: spoken(plan),
      ends: `${plan.kind} ${plan.plan_id}, after ${duration(plan.elapsed_s)}`,
      headline: [
        ["Left", volume(plan.remaining_gb), ""],
        best && ["Time left", duration(best.duration_s), range(best.duration_s_low, best.duration_s_high, duration)],
        best && ["Cost left", ...costOf(best).slice(1)],
        plan.observed_gbps !== null && ["So far", `${rate(plan.observed_gbps)} Gbit/s`, planned],
      ],
    }),
    body: [sideBySide([["Keep", plan.keep, "direct"], ["Change", plan.change, "chosen"]]),
      element("div", { class: "stack" }, taken(plan), advice(plan), commands), basis(plan)],
  };
}
