// A schedule: when each transfer sends, against its deadline, and how full that makes the regions.

import { chart } from "../shared/chart.js";
import { drawn, element, number, sortable, words } from "../shared/dom.js";
import { count, duration, percent, rate, usd, volume } from "../shared/format.js";
import { ends } from "../shared/pairs.js";
import { key, panel, tag, widePanel } from "../shared/parts.js";
import { STEPS } from "../transfer/frontier.js";
import { advice, basis, costOf, verdictPanel, vmsOf } from "./parts.js";

const MOST_LINES = 3;
const VERDICTS = { admitted: "good", refused: "bad", "best effort": "muted" };

export function spoken({ admitted, refused, best_effort: rest }) {
  const parts = [`${admitted} admitted`, refused && `${refused} refused`, rest && `${rest} best effort`];
  return parts.filter(Boolean).join(", ");
}

const sends = (regions, region) => regions.slice(0, -1).includes(region);

// What leaves regions over time, in steps: what the rates of all periods add up to between two ends.
function sending(transfers, regions) {
  const parts = transfers.flatMap((each) => each.periods.flatMap((period) => period.paths.map((path) => ({ ...period, ...path }))));
  const times = [...new Set(parts.flatMap((part) => [part.start_s, part.end_s]))].sort((a, b) => a - b);
  return [times, ...regions.map((region) => times.map((time) => parts.filter((part) => sends(part.regions, region) && part.start_s <= time && time < part.end_s)
    .reduce((sum, part) => sum + part.throughput_gbps, 0)))];
}

const stay = ({ region, start_s: start, end_s: end, most_gb: most }) => `up to ${volume(most)} at ${region} from ${duration(start)} to ${duration(end)}`;

// One row a transfer: when it sends, where its volumes wait, and its deadline, on the time of the chart below.
function rows(plan, from, end) {
  const at = (time_s) => ((time_s - from) / (end - from)) * 1000;
  const bar = (kind, { start_s: start, end_s: stop }, y, height, said) =>
    drawn("rect", { class: kind, x: Math.min(998, at(start)), width: Math.max(2, at(stop) - at(start)), y, height }, drawn("title", {}, said));
  const isRelayed = (each, { paths }) => paths.some(({ regions }) => regions.length > 2 || regions[0] !== each.src || regions[1] !== each.dst);
  const line = (each) => drawn("svg", { viewBox: "0 0 1000 24", preserveAspectRatio: "none", role: "img", "aria-label": `${each.id}: ${each.verdict}` },
    each.stored.map((stored) => bar("stored", stored, 10, 4, `${each.id}: ${stay(stored)}`)),
    each.periods.map((period) => bar(isRelayed(each, period) ? "sends relayed" : "sends", period, 4, 16,
      `${each.id}: ${rate(period.throughput_gbps)} Gbit/s from ${duration(period.start_s)} to ${duration(period.end_s)}`)),
    each.deadline_s === null ? [] : bar(each.verdict === "refused" ? "deadline bad" : "deadline good", { start_s: each.deadline_s, end_s: each.deadline_s }, 1, 22, `${each.id}: deadline ${duration(each.deadline_s)}, ${each.verdict}`));
  return element("ul", { class: "rows" }, plan.transfers.map((each) => element("li", {}, element("span", { title: each.id }, each.id), line(each))));
}

const COLOURS = ["chosen", "relay", "cap"];

function gantt(plan) {
  const holder = element("div");
  const end = Math.max(plan.end_s, ...plan.transfers.map((each) => each.deadline_s ?? 0));
  const unit = STEPS.find(([from]) => end >= from);
  const senders = plan.busiest.map(({ region }) => region)
    .filter((region) => plan.transfers.some((each) => each.periods.some((period) => period.paths.some((path) => sends(path.regions, region))))).slice(0, MOST_LINES);
  const share = (part) => percent(100 * part);
  const busy = sortable("How full the regions' VMs are", [
    words("Region", "region"), words("Fullest limit", "constraint"),
    number("At its peak", "peak_share", share), number("Mean", "mean_share", share),
  ], plan.busiest, { order: 2, descending: true });
  const from = plan.now_s;
  // Drawn when it is in the page: its width is the page's.
  queueMicrotask(() => chart(holder, (width) => ({
    height: 170, isStill: true, values: sending(plan.transfers, senders).map((each, at) => (at ? each : each.map((time) => time / unit[1]))),
    x: { title: `Time, ${unit[2]}`, range: () => [from / unit[1], end / unit[1]] }, y: { title: "sends, Gbit/s", size: width < 500 ? 70 - 22 : 170 - 22, range: (_, low, high) => [0, (high || 1) * 1.1] },
    series: senders.map((_, at) => ({ kind: "steps", color: COLOURS[at], dash: at ? [6, 3 * at] : undefined })),
  }), { title: `When ${plan.transfers.length} transfers send, with their deadlines, and what ${senders.join(", ") || "no region"} sends over time.`, table: busy }));
  return widePanel("gantt", "When each sends", element("div", { class: "gantt" },
    element("p", { class: "legend" }, key("flow", "direct"), key("back", "relayed in part"), key("kept", "deadline kept"), key("missed", "deadline refused")),
    rows(plan, from, end), element("p", { class: "legend" }, senders.map((region, at) => key(`of-${COLOURS[at]}`, `${region} sends`))), holder));
}

function remedies({ remedies: found }) {
  if (!found) return "";
  const more = found.more_vms && Object.entries(found.more_vms.vms).map(([region, number]) => `${number} more VMs at ${region}`).join(", ");
  return [`a deadline after ${duration(found.deadline_s)}`, more, found.volume_gb > 0 && `at most ${volume(found.volume_gb)} by its deadline`].filter(Boolean).join("; or ");
}

const transfers = (plan) => widePanel("transfers", "Transfers", sortable("What becomes of each", [
  words("Transfer", "id"),
  words("From, to", (each) => `${each.src} ${each.dst}`, (_, each) => ends(each.src, each.dst)),
  number("Volume", "volume_gb", volume),
  words("Verdict", "verdict", (verdict) => tag(verdict, VERDICTS[verdict])),
  number("Ends after", "end_s", duration),
  number("Deadline", "deadline_s", (time_s) => (time_s === null ? "none" : duration(time_s))),
  number("Egress", "egress_usd", usd),
  words("What would admit it", remedies),
], plan.transfers, { order: 4 }));

function stored(plan) {
  const rows = plan.transfers.flatMap((each) => each.stored.map((volumes) => ({ id: each.id, ...volumes })));
  return rows.length > 0 && panel("stored", "Stored at relays", sortable("What lies where, and when", [
    words("Transfer", "id"), words("At", "region"), number("From", "start_s", duration), number("To", "end_s", duration),
    number("At most", "most_gb", volume), number("Cost", "usd", usd),
  ], rows));
}

const reached = (value, { objective }) => (objective === "value" ? usd(value) : count(value));
const admission = (plan) => panel("admission", "Admission", sortable("By priority, in the order decided", [
  number("Priority", (each) => -each.priority, (_, each) => each.priority),
  number("Admitted", "admitted", (admitted, each) => `${admitted} of ${each.transfers}`),
  number("Reached", "reached", reached), number("No choice exceeds", "bound", reached),
], plan.admission));

export function shown(plan, { commands }) {
  return {
    head: verdictPanel(plan, {
      kind: plan.refused ? "relay" : "direct", mark: plan.refused ? "◐" : "●", title: spoken(plan),
      ends: `${count(plan.transfers.length)} ${plan.transfers.length === 1 ? "transfer" : "transfers"}, ${volume(plan.volume_gb)}`,
      headline: [["Ends after", duration(plan.end_s), `from ${duration(plan.now_s)}`], costOf(plan), vmsOf(plan), ["Relayed", percent(100 * plan.relayed_share), ""]],
    }),
    body: [gantt(plan), transfers(plan), element("div", { class: "stack" }, stored(plan), admission(plan)), element("div", { class: "stack" }, advice(plan), commands), basis(plan)],
  };
}
