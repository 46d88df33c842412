// A plan's tables: its paths, the single relays that could be, and the links that it rests on.

import { element, facts, sortable } from "../shared/dom.js";
import { duration, figure, ms, percent, perGb, rate, times, usd } from "../shared/format.js";
import { pairLink } from "../shared/pairs.js";
import { age } from "../shared/parts.js";
import { aggregate, chosenOption, hasDirect, pathLinks, relaysOf } from "./figures.js";

function privateNote({ addresses }) {
  const count = addresses.filter((kind) => kind === "private").length;
  if (count === 0) return null;
  return element("small", { class: "muted" }, count === addresses.length ? " over private addresses" : " over private and public addresses");
}

export function paths(plan) {
  const columns = [
    {
      title: "Path",
      value: (path) => path.regions.join(" "),
      shown: (path) => element("span", {}, pathLinks(path.regions), privateNote(path)),
    },
    {
      title: "Throughput",
      unit: "Gbit/s",
      number: true,
      value: (path) => path.throughput_gbps,
      shown: (path) => rate(path.throughput_gbps),
    },
    { title: "Share", number: true, value: (path) => path.share, shown: (path) => percent(100 * path.share) },
    {
      title: "Connections",
      number: true,
      value: (path) => path.connections,
      shown: (path) => figure(path.connections),
    },
    { title: "Round trip", number: true, value: (path) => path.rtt_ms, shown: (path) => ms(path.rtt_ms) },
    {
      title: "Egress",
      number: true,
      value: (path) => path.egress_usd_per_gb,
      shown: (path) => perGb(path.egress_usd_per_gb),
    },
    { title: "Limited by", value: (path) => path.bottleneck },
  ];
  return element(
    "section",
    { class: "panel wide", "aria-labelledby": "paths" },
    element("h2", { id: "paths" }, "Paths of the chosen plan"),
    sortable("An arrow leads to what is known of that pair.", columns, plan.paths, { order: 1, descending: true }),
  );
}

// relayed(relay): the address of this request with that relay alone, or without any;
// all: the address that compares all single relays, or none where all are compared.
export function candidates(plan, relayed, all) {
  const rows = [
    ...(plan.direct.throughput_gbps === null
      ? []
      : [{ ...plan.direct, relay: "none", name: "direct", gain: 1, gain_low: null, cost_ratio: 1 }]),
    ...[plan.best_relay, ...plan.alternatives].filter(Boolean).map((option) => ({ ...option, name: option.relay })),
  ];
  // Single relays are listed by speed: the chosen one may pay best without being among the fastest.
  const relay = relaysOf(plan)[0];
  if (plan.verdict === "relay" && rows.every((row) => row.relay !== relay))
    rows.push({ ...chosenOption(plan), relay, name: relay });
  if (plan.verdict === "split") {
    rows.push({
      ...chosenOption(plan),
      relay: null,
      name: `split: ${[...(hasDirect(plan) ? ["direct"] : []), ...relaysOf(plan)].join(" + ")}`,
    });
  }
  const chosen = (row) =>
    plan.verdict === "split" ? row.relay === null : row.name === (relaysOf(plan)[0] ?? "direct");
  const columns = [
    {
      title: "Candidate",
      value: (row) => row.name,
      shown: (row) => [
        row.relay === null ? row.name : element("a", { href: relayed(row.relay) }, row.name),
        chosen(row) ? [" ", element("span", { class: "tag" }, "chosen")] : null,
      ],
    },
    {
      title: "Throughput",
      unit: "Gbit/s",
      number: true,
      value: (row) => row.throughput_gbps,
      shown: (row) => rate(row.throughput_gbps),
    },
    { title: "Gain", number: true, value: (row) => row.gain, shown: (row) => times(row.gain) },
    { title: "Sure gain", number: true, value: (row) => row.gain_low, shown: (row) => times(row.gain_low) },
    { title: "Time", number: true, value: (row) => row.duration_s, shown: (row) => duration(row.duration_s) },
    {
      title: "Egress fees",
      number: true,
      value: (row) => row.cost_usd.egress,
      shown: (row) => usd(row.cost_usd.egress),
    },
    { title: "VM cost", number: true, value: (row) => row.cost_usd.vm, shown: (row) => usd(row.cost_usd.vm) },
    { title: "Total", number: true, value: (row) => row.cost_usd.total, shown: (row) => usd(row.cost_usd.total) },
    { title: "Cost ratio", number: true, value: (row) => row.cost_ratio, shown: (row) => times(row.cost_ratio) },
    { title: "Round trip", number: true, value: (row) => row.rtt_ms, shown: (row) => ms(row.rtt_ms) },
  ];
  const table = sortable("Each carries everything alone", columns, rows, {
    order: 1,
    descending: true,
    key: (row) => row.name,
  });
  return element(
    "section",
    { class: "panel wide", "aria-labelledby": "candidates" },
    element("h2", { id: "candidates" }, "Candidates"),
    element(
      "p",
      { class: "muted" },
      "As fast as it pays for each; a name leads to the plan with it alone. A sure gain holds at the bounds: the candidate's low, direct's high.",
    ),
    table,
    all && element("p", {}, element("a", { href: all }, "Compare all single relays")),
  );
}

// links: the links of the direct and of the chosen paths, as /v1/links shows them.
export function basis(plan, links) {
  const { request, snapshot } = plan;
  const { objective, time_value_usd_per_h: hour } = request;
  const worth = hour === "inf" ? "any sum" : usd(hour);
  const columns = [
    {
      title: "Link",
      value: (link) => `${link.src} ${link.dst}`,
      shown: (link) => pairLink(link.src, link.dst),
    },
    ...aggregate(links),
    {
      title: "Source",
      value: (link) => link.aggregate_gbps.source,
      shown: (link) => element("span", { class: "tag" }, link.aggregate_gbps.source),
    },
    {
      title: "Measured",
      number: true,
      value: (link) => link.aggregate_gbps.measured_at_s,
      shown: (link) => age(link.aggregate_gbps),
    },
    { title: "From", value: (link) => link.aggregate_gbps.basis },
  ];
  return element(
    "section",
    { class: "panel wide", "aria-labelledby": "basis" },
    element("h2", { id: "basis" }, "What it rests on"),
    element("p", {}, plan.confidence),
    sortable("Links of the direct and of the chosen paths", columns, links),
    facts([
      ["Plan", element("code", {}, plan.plan_id)],
      ["Snapshot", `${snapshot.id} (${snapshot.source}), as of ${snapshot.as_of}`],
      [
        "Objective",
        `${objective}${objective === "value" ? `, an hour is worth ${worth}` : ""}; margin ${percent(100 * request.margin)}`,
      ],
      [
        "Within",
        `${request.vms ? `${request.vms} VM${request.vms > 1 ? "s" : ""} a region` : "number of VMs decided by the plan"}, ${request.connections} connections each, relays: ${request.relays}`,
      ],
    ]),
  );
}
