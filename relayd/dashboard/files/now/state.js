// A transfer's state, pace and end against its plan and its deadline, in words.

import { element } from "../shared/dom.js";
import { duration, gbps, rate, UNKNOWN, volume, when } from "../shared/format.js";
import { pairLink } from "../shared/pairs.js";
import { barred, since, small, tag } from "../shared/parts.js";

export const KIND = "transfer"; // of events
const KINDS = { running: "good", silent: "warn", finished: "good", failed: "bad", cancelled: "muted" };

export const stateTag = ({ state }) => tag(state, KINDS[state]);
export const transferAddress = (id) => `now?${new URLSearchParams({ id })}`;
const isUnderWay = ({ state }) => state === "running" || state === "silent";

export function route({ src, dst, via, expected }) {
  const several = via === null && expected?.paths.length;
  return [pairLink(src, dst), small(several ? `over ${expected.paths.length} paths` : via === "direct" ? "direct" : via ? `relayed by ${via}` : "path not known")];
}

export function progress({ id, moved_gb: moved, volume_gb: all, share }) {
  return barred(share, `Part of transfer ${id} that has arrived`, `${volume(moved)} of ${volume(all)} (${Math.floor(100 * share)} %)`);
}

// What it has now, or had on the whole; "slow" is below the low bound of its plan.
export function pace({ rate_gbps: now, mean_gbps: mean, expected, is_slow: slow, state }) {
  const had = state === "running" ? now : mean;
  const { throughput_gbps: planned, throughput_gbps_low: low } = expected ?? {};
  const of = planned === null || planned === undefined ? null
    : `of ${rate(planned)} Gbit/s planned${low === null ? "" : `, ${rate(low)} at least`}`;
  return [gbps(had), had !== null && of && small(of), slow && tag("slow", "warn")];
}

const apart = (seconds) => duration(Math.round(Math.abs(seconds)));

// When it ends or ended; beside its deadline if it has one, else beside its plan.
export function ending(transfer) {
  const { ended_s: ended, forecast_end_s: forecast, planned_end_s: planned, deadline_at_s: deadline, is_late: late } = transfer;
  const at = ended ?? forecast;
  const told = at === null ? UNKNOWN : ended === null ? left(at) : since(ended);
  const beside = deadline ?? planned;
  const name = deadline === null ? "plan" : "deadline";
  const gap = at === null || beside === null || (ended === null && !isUnderWay(transfer)) ? null
    : `${apart(at - beside)} ${at > beside ? "after" : "before"} its ${name}`;
  // Without a forecast, as of one that is silent, the deadline still stands.
  const due = at === null && deadline !== null && isUnderWay(transfer)
    && element("small", { class: late ? "bad" : null }, deadline * 1000 < Date.now() ? "its deadline is over: " : `deadline ${left(deadline)}: `, when(Math.round(deadline)));
  return [told, at !== null && small(when(Math.round(at))), due,
    gap && transfer.state !== "failed" && transfer.state !== "cancelled" && element("small", { class: late ? "bad" : "muted" }, gap),
    late && tag("late", "bad")];
}

function left(at_s) {
  const seconds = at_s - Date.now() / 1000;
  return seconds < 0 ? "any moment" : `in ${duration(Math.ceil(seconds))}`;
}
