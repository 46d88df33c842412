// One transfer: how far it is, its paths and reports, and what to do with the rest of it.

import { get } from "../shared/api.js";
import { element, facts, replace } from "../shared/dom.js";
import { duration, gbps, UNKNOWN, usd, volume, when } from "../shared/format.js";
import { keepFresh, stateLine } from "../shared/live.js";
import { box, cardTable, partsOf, redraw, since } from "../shared/parts.js";
import { content, restsOn, show } from "../shared/shell.js";
import { heard } from "./list.js";
import { ending, pace, progress, route, stateTag } from "./state.js";

const LAST = 20;
const RENEW_MS = 15_000;

export function onePage(id) {
  const line = stateLine();
  const parts = partsOf("head", "rest", "now", "paths", "reports");
  replace(content, element("p", {}, element("a", { href: "now" }, "Now")), parts.head, line, parts.rest, parts.now, parts.paths, parts.reports);
  document.title = `Transfer ${id} - relayd`;
  async function refresh() {
    await show(async () => {
      const { snapshot, details } = await get(`v1/transfers/${encodeURIComponent(id)}`);
      restsOn(snapshot);
      const { transfer } = details;
      redraw(parts.head, [transfer.state, transfer.reason], () => [
        element("h2", {}, `${transfer.label || transfer.id} `, stateTag(transfer)), element("p", {}, transfer.reason)]);
      redraw(parts.rest, details.rest, () => details.rest && rest(details.rest));
      replace(parts.now, now(transfer));
      redraw(parts.paths, details.paths, () => details.paths.length > 0 && paths(details.paths));
      redraw(parts.reports, details.reports, () => details.reports.length > 0 && reports(details.reports));
    });
  }
  const renew = keepFresh(line, refresh, heard(({ subject }) => subject === id));
  setInterval(renew, RENEW_MS);
}

// Documents stand behind the #, which browsers send nowhere.
function rest({ question, advised, body }) {
  const { plan, ...said } = body;
  const address = `./?${new URLSearchParams(question === "transfer" ? said : { question, ...said })}`
    + (plan ? `#${new URLSearchParams({ plan: JSON.stringify(plan) })}` : "");
  return element("p", { class: advised ? "panel advised" : null },
    advised && "It is late, or slower than its plan allows. ", element("a", { href: address }, "Ask what to do with the rest"));
}

function now(transfer) {
  const { expected, planned_end_s: planned, deadline_at_s: deadline, ended_s: ended } = transfer;
  return element("div", { class: "grid" },
    panel("Progress", [["Arrived", progress(transfer)], [transfer.state === "running" ? "Rate now" : "Mean rate", element("span", { class: "lines" }, pace(transfer))],
      ["Mean since it began", gbps(transfer.mean_gbps)], [ended === null ? "Ends" : "Ended", element("span", { class: "lines" }, ending(transfer))]]),
    panel("Plan", [["Rate", expected ? gbps(expected.throughput_gbps) : UNKNOWN], ["Takes", duration(expected?.duration_s)],
      ["Ends", when(planned === null ? null : Math.round(planned))], ["Deadline", deadline === null ? "none" : when(Math.round(deadline))], ["Costs", usd(expected?.cost_usd)]]),
    panel("Transfer", [["Path", element("span", { class: "lines" }, route(transfer))], ["Volume", volume(transfer.volume_gb)], ["Began", element("span", {}, since(transfer.began_s))],
      ["Reported", element("span", {}, since(transfer.reported_s), ` by ${transfer.who || "nobody named"}`)], ["Id", transfer.id]]));
}

const panel = (title, pairs) => box(title, facts(pairs));

function paths(found) {
  return [element("h2", {}, "Paths"), cardTable("paths", "Paths that were planned or reported", [["Path"], ["Planned", "number"], ["Arrived over it", "number"]],
    found.map(({ regions, planned_gbps: planned, moved_gb: moved }) => ({ cells: [regions.join(" → "), gbps(planned), moved === null ? "not reported" : volume(moved)] })))];
}

function reports(found) {
  const shown = found.slice(-LAST).reverse();
  const caption = found.length > LAST ? `The last ${LAST} of ${found.length} reports` : "Reports, the newest first";
  return element("details", {}, element("summary", {}, "Reports"), cardTable("reports", caption, [["At"], ["Arrived", "number"], ["Rate since the one before", "number"]],
    shown.map(({ at_s: at, moved_gb: moved, rate_gbps: had }) => ({ cells: [when(at), volume(moved), gbps(had)] }))));
}
