// What if: the same question with one thing changed, and its answer beside the one it began with.

import { get } from "../shared/api.js";
import { element, table } from "../shared/dom.js";
import { duration, percent, rate, usd } from "../shared/format.js";
import { vmCount } from "../answers/parts.js";
import { FIELDS, worded } from "./fields.js";
import { tidied, toAddress } from "./request.js";

const vmsOf = ({ vms }) => (vms && !Array.isArray(vms) && Object.values(vms).every((each) => typeof each === "number") ? vms : {});

// Earlier snapshots that are kept: the newest of at least that age.
const AGES = [["yesterday's", "1d", 86400], ["last week's", "7d", 7 * 86400], ["last month's", "30d", 30 * 86400]];
let kept = null;
export function earlierSnapshots() {
  kept ??= Promise.all(AGES.map(([name, age, seconds]) => get("v1/snapshots", { older_than_s: seconds, limit: 1 })
    .then(({ snapshots: [found] }) => found && { name, age, id: found.id }))).then((all) =>
    all.filter((each, at) => each && all.findIndex((other) => other?.id === each.id) === at)).catch(() => []);
  return kept;
}

// Links to the same question with another number of VMs, of connections, without relays, or with
// another objective; each keeps this answer beside the new one.
export function whatIfs(request, plan, addressOf, earlier) {
  const ifs = [];
  const [vms, connections, relays, objective] = ["vms", "connections", "relays", "objective"].map((name) => FIELDS.get(name));
  const most = Math.max(0, ...Object.values(vmsOf(plan)));
  if (vms?.kind === "count" && most && most < vms.maximum) ifs.push([`${most + 1} VMs a region`, { vms: String(most + 1) }]);
  const opened = 2 * Number(request.connections ?? connections?.default);
  if (connections?.kind === "count" && opened <= connections.maximum) ifs.push([`${opened} connections a VM`, { connections: String(opened) }]);
  if (relays?.choices.some(([choice]) => choice === "none")) {
    ifs.push(request.relays === "none" ? ["with relays", { relays: "" }] : ["no relays", { relays: "none" }]);
  }
  for (const [choice, meaning] of objective?.choices ?? []) {
    if (choice !== (request.objective ?? objective.default)) ifs.push([meaning, { objective: choice }]);
  }
  if (request.snapshot) ifs.push(["the newest snapshot", { snapshot: "" }]);
  else if (FIELDS.has("snapshot")) ifs.push(...earlier.map(({ name, age }) => [`${name} snapshot`, { snapshot: age }]));
  const now = toAddress(request);
  return element("nav", { class: "what-ifs", "aria-label": "What if" }, element("span", { class: "muted" }, "What if: "),
    ifs.map(([text, change]) => element("a", { href: addressOf({ ...request, ...change }, now) }, text)),
    element("a", { href: addressOf(request, now) }, "keep this answer and change the form"));
}

const costOf = (plan) => plan.cost_usd ?? plan.candidates?.[0].cost_usd;
const ROWS = [
  ["Verdict", (plan) => plan.verdict],
  ["Throughput", (plan) => plan.throughput_gbps, (value) => `${rate(value)} Gbit/s`],
  ["Time", (plan) => plan.duration_s ?? plan.end_s ?? plan.candidates?.[0].duration_s, duration],
  ["Total cost", (plan) => costOf(plan)?.total, usd],
  ["Egress fees", (plan) => costOf(plan)?.egress, usd],
  ["VM cost", (plan) => costOf(plan)?.vm, usd],
  ["Relayed", (plan) => plan.relayed_share, (value) => percent(100 * value)],
  ["Admitted", (plan) => plan.admitted],
  ["VMs", (plan) => vmCount(vmsOf(plan)) || undefined],
];

function change(before, after) {
  if (typeof before !== "number" || typeof after !== "number" || !before) return "";
  const share = (100 * (after - before)) / Math.abs(before);
  return Math.abs(share) < 0.05 ? "same" : `${share > 0 ? "+" : "−"}${Math.abs(share).toFixed(Math.abs(share) < 10 ? 1 : 0)} %`;
}

// What the two requests differ in, as the form calls it.
function differences(one, other) {
  const [before, after] = [tidied(one), tidied(other)];
  const said = (field, text = field.standard || "not set") => (text.length > 40 ? "other rows"
    : field.unit && text && Number.isFinite(Number(text)) ? `${text} ${field.unit}` : text);
  return [...FIELDS.values()].filter((field) => before[field.name] !== after[field.name])
    .map((field) => `${field.label}: ${said(field, before[field.name])} → ${said(field, after[field.name])}`);
}

// before: the answer that was kept, or the problem that came in its place.
export function besideTable(now, before, addressOf) {
  const differ = differences(before.request, now.request);
  const isKnown = !(before.plan instanceof Error);
  const cell = (value, shown) => ((value ?? null) === null ? "–" : shown(value));
  const rows = ROWS.map(([name, value, shown = String]) => ({ name, shown, was: isKnown ? value(before.plan) : undefined, is: value(now.plan) }))
    .filter(({ was, is }) => (was ?? is ?? null) !== null)
    .map(({ name, shown, was, is }) => [name, cell(was, shown), cell(is, shown), change(was, is)]);
  return element("section", { class: "panel beside", "aria-labelledby": "beside" }, element("h2", { id: "beside" }, "Before and now"),
    element("p", {}, differ.length ? differ.join("; ") : "Both are the same question: change the form and ask again."),
    !isKnown && element("p", { class: "problem" }, `Before: ${worded(before.plan)}`),
    table("", "The answers", [[""], ["Before", "number"], ["Now", "number"], ["Change", "number"]], rows),
    element("p", { class: "row" }, element("a", { href: `./?${before.address}` }, "Back to the one before"),
      element("a", { href: addressOf(now.request) }, "Stop comparing")));
}
