// A schedule: when each transfer sends, against its deadline, and how full that makes the regions.

import { chart } from "../shared/chart.js";
import { element, sortable } from "../shared/dom.js";
import { count, duration, percent, rate, usd, volume } from "../shared/format.js";
import { ends } from "../shared/pairs.js";
import { colour } from "../shared/shell.js";
import { advice, basis, costOf, panel, vmsOf, widePanel } from "./parts.js";
import { verdictPanel } from "./verdict.js";

const ROW_PX = 26;
const MOST_LINES = 3;
const UNITS = [[172800, 86400, "days"], [7200, 3600, "hours"], [180, 60, "minutes"], [0, 1, "seconds"]];
const VERDICTS = { admitted: "good", refused: "bad", "best effort": "muted" };

export function spoken({ admitted, refused, best_effort: rest }) {
  const parts = [`${admitted} admitted`, refused && `${refused} refused`, rest && `${rest} best effort`];
  return parts.filter(Boolean).join(", ");
}

const sends = (regions, region) => regions.slice(0, -1).includes(region);

// What leaves a region over time, in steps: what the rates of all periods add up to between two ends.
function sending(transfers, region) {
  const paths = transfers.flatMap((each) => each.periods.flatMap((period) => period.paths.filter((path) => sends(path.regions, region))
    .map((path) => ({ ...period, throughput_gbps: path.throughput_gbps }))));
  const times = [...new Set(paths.flatMap((path) => [path.start_s, path.end_s]))].sort((a, b) => a - b);
  return times.map((time_s) => ({
    time_s, region,
    gbps: paths.filter((path) => path.start_s <= time_s && time_s < path.end_s).reduce((sum, path) => sum + path.throughput_gbps, 0),
  }));
}

const stay = ({ region, start_s: start, end_s: end, most_gb: most }) => `up to ${volume(most)} at ${region} from ${duration(start)} to ${duration(end)}`;

function specification(plan, senders, unit, width) {
  const [, size, name] = unit;
  const end = Math.max(...plan.transfers.map((each) => Math.max(each.end_s ?? 0, each.deadline_s ?? 0)), plan.end_s);
  const x = { field: "time", type: "quantitative", scale: { domain: [plan.now_s / size, end / size], nice: false }, axis: { tickCount: width < 500 ? 4 : 10, format: "~g" } };
  const y = { field: "id", type: "nominal", sort: null, title: null, scale: { domain: plan.transfers.map((each) => each.id) }, axis: { labelLimit: width < 500 ? 60 : 160, minExtent: width < 500 ? 70 : 170, maxExtent: width < 500 ? 70 : 170 } };
  const bars = plan.transfers.flatMap((each) => each.periods.map((period) => ({
    id: each.id, time: period.start_s / size, end: period.end_s / size, gbps: period.throughput_gbps,
    path: period.paths.some(({ regions }) => regions.length > 2 || regions[0] !== each.src || regions[1] !== each.dst) ? "relayed in part" : "direct",
    said: `${each.id}: ${rate(period.throughput_gbps)} Gbit/s from ${duration(period.start_s)} to ${duration(period.end_s)}`,
  })));
  const waits = plan.transfers.flatMap((each) => each.stored.map((stored) => ({
    id: each.id, time: stored.start_s / size, end: stored.end_s / size, said: `${each.id}: ${stay(stored)}`,
  })));
  const marks = plan.transfers.filter((each) => each.deadline_s !== null).map((each) => ({
    id: each.id, time: each.deadline_s / size, kept: each.verdict === "refused" ? "deadline refused" : "deadline kept", said: `${each.id}: deadline ${duration(each.deadline_s)}, ${each.verdict}`,
  }));
  const lines = senders.flatMap((region) => sending(plan.transfers, region)).map((row) => ({ ...row, time: row.time_s / size }));
  const inner = width - (width < 500 ? 100 : 190);
  const scale = (domain, range) => ({ domain, range: range.map(colour) });
  const legend = { orient: "top", direction: "horizontal", title: null };
  return {
    width: undefined, autosize: { type: "pad" }, spacing: 12,
    resolve: { scale: { x: "shared", color: "independent" } },
    vconcat: [
      {
        width: inner, height: ROW_PX * plan.transfers.length, resolve: { scale: { color: "independent" } },
        layer: [
          ...(waits.length ? [{
            data: { values: waits }, mark: { type: "bar", height: { band: 0.2 }, color: colour("muted") },
            encoding: { x: { ...x, title: null }, x2: { field: "end" }, y, tooltip: { field: "said" } },
          }] : []),
          {
            data: { values: bars }, mark: { type: "bar", height: { band: 0.7 }, stroke: colour("page"), strokeWidth: 1 },
            encoding: {
              x: { ...x, title: null }, x2: { field: "end" }, y, tooltip: { field: "said" },
              color: { field: "path", type: "nominal", legend, scale: scale(["direct", "relayed in part"], ["chosen", "relay"]) },
            },
          },
          {
            data: { values: marks }, mark: { type: "tick", thickness: 3, height: { band: 0.95 } },
            encoding: { x: { ...x, title: null }, y, tooltip: { field: "said" }, color: { field: "kept", type: "nominal", legend, scale: scale(["deadline kept", "deadline refused"], ["good", "bad"]) } },
          },
        ],
      },
      {
        width: inner, height: 110, data: { values: lines }, mark: { type: "line", interpolate: "step-after", strokeWidth: 2 },
        encoding: {
          x: { ...x, title: `Time, ${name}` }, y: { field: "gbps", type: "quantitative", title: "sends, Gbit/s", axis: { tickCount: 4, minExtent: width < 500 ? 70 : 170, maxExtent: width < 500 ? 70 : 170, titleX: -40 } },
          color: { field: "region", type: "nominal", legend, scale: scale(senders, ["chosen", "relay", "cap"]) }, strokeDash: { field: "region", type: "nominal", legend: null },
        },
      },
    ],
  };
}

function gantt(plan) {
  const holder = element("div", { class: "gantt" });
  const end = Math.max(plan.end_s, ...plan.transfers.map((each) => each.deadline_s ?? 0));
  const unit = UNITS.find(([from]) => end >= from);
  const senders = plan.busiest.map(({ region }) => region)
    .filter((region) => plan.transfers.some((each) => each.periods.some((period) => period.paths.some((path) => sends(path.regions, region))))).slice(0, MOST_LINES);
  const busy = sortable("How full the regions' VMs are", [
    { title: "Region", value: ({ region }) => region }, { title: "Fullest limit", value: ({ constraint }) => constraint },
    { title: "At its peak", number: true, value: (each) => each.peak_share, shown: (each) => percent(100 * each.peak_share) },
    { title: "Mean", number: true, value: (each) => each.mean_share, shown: (each) => percent(100 * each.mean_share) },
  ], plan.busiest, { order: 2, descending: true });
  // Drawn when it is in the page: its width is the page's.
  queueMicrotask(() => chart(holder, () => specification(plan, senders, unit, Math.max(280, holder.clientWidth)), {
    title: `When ${plan.transfers.length} transfers send, with their deadlines, and what ${senders.join(", ") || "no region"} sends over time.`, table: busy,
  }));
  return widePanel("gantt", "When each sends", holder);
}

function remedies({ remedies: found }) {
  if (!found) return "";
  const more = found.more_vms && Object.entries(found.more_vms.vms).map(([region, number]) => `${number} more VMs at ${region}`).join(", ");
  return [`a deadline after ${duration(found.deadline_s)}`, more, found.volume_gb > 0 && `at most ${volume(found.volume_gb)} by its deadline`].filter(Boolean).join("; or ");
}

const transfers = (plan) => widePanel("transfers", "Transfers", sortable("What becomes of each", [
  { title: "Transfer", value: (each) => each.id },
  { title: "From, to", value: (each) => `${each.src} ${each.dst}`, shown: (each) => ends(each.src, each.dst) },
  { title: "Volume", number: true, value: (each) => each.volume_gb, shown: (each) => volume(each.volume_gb) },
  { title: "Verdict", value: (each) => each.verdict, shown: (each) => element("span", { class: `tag ${VERDICTS[each.verdict]}` }, each.verdict) },
  { title: "Ends after", number: true, value: (each) => each.end_s, shown: (each) => duration(each.end_s) },
  { title: "Deadline", number: true, value: (each) => each.deadline_s, shown: (each) => (each.deadline_s === null ? "none" : duration(each.deadline_s)) },
  { title: "Egress", number: true, value: (each) => each.egress_usd, shown: (each) => usd(each.egress_usd) },
  { title: "What would admit it", value: remedies },
], plan.transfers, { order: 4 }));

function stored(plan) {
  const rows = plan.transfers.flatMap((each) => each.stored.map((volumes) => ({ id: each.id, ...volumes })));
  if (!rows.length) return "";
  return panel("stored", "Stored at relays", sortable("What lies where, and when", [
    { title: "Transfer", value: (each) => each.id }, { title: "At", value: (each) => each.region },
    { title: "From", number: true, value: (each) => each.start_s, shown: (each) => duration(each.start_s) },
    { title: "To", number: true, value: (each) => each.end_s, shown: (each) => duration(each.end_s) },
    { title: "At most", number: true, value: (each) => each.most_gb, shown: (each) => volume(each.most_gb) },
    { title: "Cost", number: true, value: (each) => each.usd, shown: (each) => usd(each.usd) },
  ], rows));
}

const admission = (plan) => panel("admission", "Admission", sortable("By priority, in the order decided", [
  { title: "Priority", number: true, value: (each) => -each.priority, shown: (each) => String(each.priority) },
  { title: "Admitted", number: true, value: (each) => each.admitted, shown: (each) => `${each.admitted} of ${each.transfers}` },
  { title: "Reached", number: true, value: (each) => each.reached, shown: (each) => (each.objective === "value" ? usd(each.reached) : count(each.reached)) },
  { title: "No choice exceeds", number: true, value: (each) => each.bound, shown: (each) => (each.objective === "value" ? usd(each.bound) : count(each.bound)) },
], plan.admission));

export function shown(plan, { commands }) {
  return {
    head: verdictPanel(plan, {
      kind: plan.refused ? "relay" : "direct", mark: plan.refused ? "◐" : "●", title: spoken(plan),
      ends: `${count(plan.transfers.length)} ${plan.transfers.length === 1 ? "transfer" : "transfers"}, ${volume(plan.volume_gb)}`,
      headline: [["Ends after", duration(plan.end_s), `from ${duration(plan.now_s)}`], costOf(plan), vmsOf(plan), ["Relayed", percent(100 * plan.relayed_share), ""]],
    }),
    body: [gantt(plan), transfers(plan), element("div", { class: "stack" }, stored(plan), admission(plan), advice(plan)), element("div", { class: "stack" }, commands, basis(plan))],
  };
}
