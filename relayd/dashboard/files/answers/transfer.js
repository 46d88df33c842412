// A transfer: direct, relayed or split.

import { get } from "../shared/api.js";
import { element, number, sortable, words } from "../shared/dom.js";
import { duration, ms, percent, rate, times, usd, volume } from "../shared/format.js";
import { linkPath, pairLink } from "../shared/pairs.js";
import { age, folded } from "../shared/parts.js";
import { places } from "../shared/places.js";
import { chosenOption, hasDirect, linksOf, pathTable, planOnMap, rateColumns, relaysOf, verdictText } from "../transfer/figures.js";
import { frontier, limitsFor } from "../transfer/frontier.js";
import { mapPanel } from "../world/map.js";
import { advice, basis, bottleneck, costOf, sideBySide, throughputOf, verdictPanel, vmsOf } from "./parts.js";

const COMPARED = 6;
const MARKS = { direct: "→", relay: "⤼", split: "⇉" };

export const spoken = verdictText;

const known = (option) => option?.throughput_gbps && option;

function comparison(plan) {
  const { direct, best_relay: best, verdict } = plan;
  const notes = [!direct.feasible && `Direct: ${direct.reason}`, !best && "Best relay: there is none within these rules and limits."];
  return sideBySide([
    ["Direct", known({ ...direct, relays: [] }), "direct"], ["Best relay", best && { ...best, relays: [best.relay] }, "relay"],
    [`Chosen: ${verdict}`, chosenOption(plan), "chosen"],
  ], notes.filter(Boolean));
}

// relayed(relay): the address of this request with that relay alone, or without any;
// all: the address that compares all single relays, or none where all are compared.
function candidates(plan, relayed, all) {
  const [relay] = relaysOf(plan);
  const rows = [plan.best_relay, ...plan.alternatives].filter(Boolean).map((option) => ({ ...option, name: option.relay }));
  if (known(plan.direct)) rows.unshift({ ...plan.direct, relay: "none", name: "direct", gain: 1, gain_low: null, cost_ratio: 1 });
  // Single relays are listed by speed: the chosen one may pay best without being among the fastest.
  if (plan.verdict === "relay" && rows.every((row) => row.relay !== relay)) rows.push({ ...chosenOption(plan), relay, name: relay });
  if (plan.verdict === "split") {
    const parts = [...(hasDirect(plan) ? ["direct"] : []), ...relaysOf(plan)];
    rows.push({ ...chosenOption(plan), relay: null, name: `split: ${parts.join(" + ")}` });
  }
  const isChosen = (row) => (plan.verdict === "split" ? row.relay === null : row.name === (relay ?? "direct"));
  return folded("candidates", "Candidates",
    element("p", { class: "muted" }, "As fast as it pays for each; a name leads to the plan with it alone. A sure gain holds at the bounds: the candidate's low, direct's high."),
    sortable("Each carries everything alone", [
      words("Candidate", "name", (name, row) => [
        row.relay === null ? name : element("a", { href: relayed(row.relay) }, name),
        isChosen(row) && [" ", element("span", { class: "tag" }, "chosen")],
      ]),
      number("Throughput", "throughput_gbps", rate, "Gbit/s"),
      number("Gain", "gain", times),
      number("Sure gain", "gain_low", times),
      number("Time", "duration_s", duration),
      number("Egress fees", "cost_usd.egress", usd),
      number("VM cost", "cost_usd.vm", usd),
      number("Total", "cost_usd.total", usd),
      number("Cost ratio", "cost_ratio", times),
      number("Round trip", "rtt_ms", ms),
    ], rows, { order: 1, descending: true, key: (row) => row.name }),
    all && element("p", {}, element("a", { href: all }, "Compare all single relays")));
}

// links: the links of the direct and of the chosen paths, as /v1/links shows them.
function restsOn(plan, links) {
  const { objective, time_value_usd_per_h: hour, margin, vms, connections, relays } = plan.request;
  const worth = objective === "value" ? `, an hour is worth ${hour === "inf" ? "any sum" : usd(hour)}` : "";
  const most = vms ? `${vms} VM${vms > 1 ? "s" : ""} a region` : "number of VMs decided by the plan";
  return basis(plan, [
    ["Objective", `${objective}${worth}; margin ${percent(100 * margin)}`],
    ["Within", `${most}, ${connections} connections each, relays: ${relays}`],
  ], sortable("Links of the direct and of the chosen paths", [
    words("Link", (link) => `${link.src} ${link.dst}`, (_, link) => pairLink(link.src, link.dst)),
    ...rateColumns(links),
    words("Source", "aggregate_gbps.source", (source) => element("span", { class: "tag" }, source)),
    number("Measured", "aggregate_gbps.measured_at_s", (_, link) => age(link.aggregate_gbps)),
    words("From", "aggregate_gbps.basis"),
  ], links));
}

// A link may have vanished with a newer snapshot: then there is one row less.
async function linkOf(link, signal) {
  try {
    return (await get(linkPath(...link), {}, { signal })).link;
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

export async function shown(plan, { request, addressOf, go, mapAddress, commands, signal }) {
  const [{ regions }, ...links] = await Promise.all([places(), ...linksOf(plan).map((link) => linkOf(link, signal))]);
  const { src, dst, volume_gb: gb } = plan.request;
  const isPart = plan.alternatives.length + 1 >= Number(request.candidates ?? COMPARED);
  const all = isPart && `${addressOf({ ...request, candidates: "1000" })}#open=candidates`;
  const to = (point) => ({ ...request, ...limitsFor(point, plan) });
  return {
    head: verdictPanel(plan, {
      kind: plan.verdict, mark: MARKS[plan.verdict], title: verdictText(plan), ends: [pairLink(src, dst), `, ${volume(gb)}`],
      headline: [throughputOf(plan), ["Time", duration(plan.duration_s), `for ${volume(gb)}`], costOf(plan), vmsOf(plan)],
    }),
    body: [
      element("div", { class: "stack" }, comparison(plan), frontier(plan, (point) => go(to(point)), (point) => addressOf(to(point)))),
      element("div", { class: "stack" }, bottleneck(plan), advice(plan), commands),
      folded("paths", "Paths", pathTable(plan)),
      mapPanel("On the map", planOnMap(plan, regions.filter((region) => region.in_graph)),
        element("p", {}, element("a", { href: mapAddress }, "On a page of its own"))),
      candidates(plan, (relay) => addressOf({ ...request, relays: relay }), all), restsOn(plan, links.filter(Boolean)),
    ],
  };
}
