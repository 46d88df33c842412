// A plan for people: what to do and why, what else could be done, and what it rests on.

import { element, facts, sortable } from "./dom.js";
import { ago, duration, figure, gbps, ms, percent, perGb, rate, times, usd, volume } from "./format.js";

const relaysOf = (plan) => plan.paths.filter((path) => path.regions.length === 3).map((path) => path.regions[1]);
const hasDirect = (plan) => plan.paths.some((path) => path.regions.length === 2);
// A long name may break behind its provider.
const breakable = (name) => { const at = name.indexOf(":") + 1; return at ? [name.slice(0, at), element("wbr"), name.slice(at)] : [name]; };
const listed = (vms) => Object.entries(vms).map(([region, count]) => `${count} at ${region}`).join(", ");

export const pairAddress = (src, dst) => `pair?${new URLSearchParams({ src, dst })}`;

export function verdictText(plan) {
  const relays = relaysOf(plan);
  if (plan.verdict === "direct") return "Send it direct";
  if (plan.verdict === "relay") return `Relay it through ${relays[0]}`;
  return `Split it over ${[...(hasDirect(plan) ? ["the direct path"] : []), ...relays].join(relays.length + hasDirect(plan) === 2 ? " and " : ", ")}`;
}

const MARKS = { direct: "→", relay: "⤼", split: "⇉" };

export function verdict(plan) {
  const [low, high] = [plan.throughput_gbps_low, plan.throughput_gbps_high];
  const headline = [
    ["Throughput", `${rate(plan.throughput_gbps)} Gbit/s`, `${rate(low)} to ${rate(high)} Gbit/s`],
    ["Time", duration(plan.duration_s), `for ${volume(plan.request.volume_gb)}`],
    ["Cost", usd(plan.cost_usd.total), `${usd(plan.cost_usd.egress)} egress, ${usd(plan.cost_usd.vm)} VMs`],
    ["VMs", String(Object.values(plan.vms).reduce((sum, count) => sum + count, 0)), listed(plan.vms)],
  ];
  return element("section", { class: `panel verdict verdict-${plan.verdict}`, "aria-labelledby": "verdict" },
    element("p", { class: "ends muted" }, `${plan.request.src} → ${plan.request.dst}, ${volume(plan.request.volume_gb)}`),
    element("h2", { id: "verdict", class: "badge" }, element("span", { class: "mark", "aria-hidden": "true" }, MARKS[plan.verdict]), verdictText(plan)),
    element("p", { class: "reason" }, plan.reason),
    element("ul", { class: "headline" }, headline.map(([name, value, more]) => element("li", {},
      element("span", { class: "muted" }, name), element("strong", {}, value), element("small", { class: "muted" }, more)))),
    element("p", { class: "muted" }, plan.confidence));
}

// The chosen plan with the figures that single candidates have.
function chosenOption(plan) {
  const { direct, paths: used } = plan;
  return { ...plan, rtt_ms: Math.max(...used.map((path) => path.rtt_ms)), connections: used.map((path) => path.connections),
    gain: direct.throughput_gbps ? plan.throughput_gbps / direct.throughput_gbps : null,
    gain_low: direct.throughput_gbps_high ? plan.throughput_gbps_low / direct.throughput_gbps_high : null,
    cost_ratio: direct.cost_usd ? plan.cost_usd.total / direct.cost_usd.total : null };
}

// Direct, the best relay and what was chosen, as alike columns.
export function columnsOf(plan) {
  const { direct, best_relay: best } = plan;
  return [
    { title: "Direct", kind: "direct", is: direct.throughput_gbps !== null, option: direct, relays: [], note: direct.feasible ? "" : direct.reason },
    { title: "Best relay", kind: "relay", is: Boolean(best), option: best ?? {}, relays: best ? [best.relay] : [], note: best ? "" : "There is none within these rules and limits." },
    { title: `Chosen: ${plan.verdict}`, kind: "chosen", is: true, relays: relaysOf(plan), note: "", option: chosenOption(plan) },
  ];
}

function bar(option, most, kind) {
  const range = element("span", { class: "range" });
  const fill = element("span", { class: "fill" });
  const share = (value) => `${(100 * (value ?? option.throughput_gbps)) / most}%`;
  fill.style.width = share(option.throughput_gbps);
  range.style.left = share(option.throughput_gbps_low);
  range.style.right = `calc(100% - ${share(option.throughput_gbps_high)})`;
  return element("div", { class: `rate-bar rate-bar-${kind}`, "aria-hidden": "true" }, fill, range);
}

export function comparison(plan) {
  const columns = columnsOf(plan);
  const most = Math.max(...columns.filter((column) => column.is).map(({ option }) => option.throughput_gbps_high ?? option.throughput_gbps));
  const direct = plan.direct.throughput_gbps === null ? null : plan.direct;
  const ratio = (value, of) => (of ? times(value / of) : "–");
  const rows = [
    ["Throughput", ({ option, kind }) => [`${rate(option.throughput_gbps)} Gbit/s`, bar(option, most, kind)]],
    ["Bounds", ({ option }) => `${rate(option.throughput_gbps_low)} to ${rate(option.throughput_gbps_high)}`],
    ["Speed, direct = 1", ({ option }) => ratio(option.throughput_gbps, direct?.throughput_gbps)],
    ["Time", ({ option }) => duration(option.duration_s)],
    ["Egress fees", ({ option }) => usd(option.cost_usd.egress)],
    ["VM cost", ({ option }) => usd(option.cost_usd.vm)],
    ["Total cost", ({ option }) => element("strong", {}, usd(option.cost_usd.total))],
    ["Cost, direct = 1", ({ option }) => ratio(option.cost_usd.total, direct?.cost_usd.total)],
    ["Round trip", ({ option }) => ms(option.rtt_ms)],
    ["Relays", ({ relays }) => (relays.length ? relays.map((relay) => element("div", {}, breakable(relay))) : "none")],
    ["Connections", ({ option }) => [option.connections].flat().map(figure).join(" + ")],
    ["VMs", ({ option }) => Object.entries(option.vms ?? {}).map(([region, count]) => element("div", {}, `${count} at `, breakable(region)))],
  ];
  const notes = columns.filter((column) => column.note).map((column) => element("p", { class: "muted" }, `${column.title}: ${column.note}`));
  return element("section", { class: "panel", "aria-labelledby": "compared" }, element("h2", { id: "compared" }, "Side by side"),
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Direct, best relay and chosen" }, element("table", { class: "compared" },
      element("thead", {}, element("tr", {}, element("td"), columns.map((column) => element("th", { scope: "col", class: `number ${column.kind}` }, column.title)))),
      element("tbody", {}, rows.map(([name, shown]) => element("tr", {}, element("th", { scope: "row" }, name),
        columns.map((column) => element("td", { class: `number ${column.kind}` }, column.is ? shown(column) : "–"))))))), notes);
}

export function legs(regions) {
  const name = (region) => element("span", { class: "name" }, region);
  return regions.flatMap((region, at) => (at === 0 ? [name(region)] : [
    " ", element("a", { href: pairAddress(regions[at - 1], region), "aria-label": `to, by the pair ${regions[at - 1]} to ${region}` }, "→"), " ", name(region)]));
}

export function paths(plan) {
  const columns = [
    { title: "Path", value: (path) => path.regions.join(" "), shown: (path) => element("span", {}, legs(path.regions)) },
    { title: "Throughput", unit: "Gbit/s", number: true, value: (path) => path.throughput_gbps, shown: (path) => rate(path.throughput_gbps) },
    { title: "Share", number: true, value: (path) => path.share, shown: (path) => percent(100 * path.share) },
    { title: "Connections", number: true, value: (path) => path.connections, shown: (path) => figure(path.connections) },
    { title: "Round trip", number: true, value: (path) => path.rtt_ms, shown: (path) => ms(path.rtt_ms) },
    { title: "Egress", number: true, value: (path) => path.egress_usd_per_gb, shown: (path) => perGb(path.egress_usd_per_gb) },
    { title: "Limited by", value: (path) => path.bottleneck },
  ];
  return element("section", { class: "panel wide", "aria-labelledby": "paths" }, element("h2", { id: "paths" }, "Paths of the chosen plan"),
    sortable("An arrow leads to what is known of that pair.", columns, plan.paths, { order: 1, descending: true }));
}

// relayed(relay): the address of this request with that relay alone, or without any;
// all: the address that compares all single relays, or none where all are compared.
export function candidates(plan, relayed, all) {
  const rows = [
    ...(plan.direct.throughput_gbps === null ? [] : [{ ...plan.direct, relay: "none", name: "direct", gain: 1, gain_low: null, cost_ratio: 1 }]),
    ...[plan.best_relay, ...plan.alternatives].filter(Boolean).map((option) => ({ ...option, name: option.relay })),
  ];
  // Single relays are listed by speed: the chosen one may pay best without being among the fastest.
  const relay = relaysOf(plan)[0];
  if (plan.verdict === "relay" && rows.every((row) => row.relay !== relay)) rows.push({ ...chosenOption(plan), relay, name: relay });
  if (plan.verdict === "split") {
    rows.push({ ...chosenOption(plan), relay: null, name: `split: ${[...(hasDirect(plan) ? ["direct"] : []), ...relaysOf(plan)].join(" + ")}` });
  }
  const chosen = (row) => (plan.verdict === "split" ? row.relay === null : row.name === (relaysOf(plan)[0] ?? "direct"));
  const columns = [
    { title: "Candidate", value: (row) => row.name, shown: (row) => [row.relay === null ? row.name : element("a", { href: relayed(row.relay) }, row.name),
      chosen(row) ? [" ", element("span", { class: "tag" }, "chosen")] : null] },
    { title: "Throughput", unit: "Gbit/s", number: true, value: (row) => row.throughput_gbps, shown: (row) => rate(row.throughput_gbps) },
    { title: "Gain", number: true, value: (row) => row.gain, shown: (row) => times(row.gain) },
    { title: "Sure gain", number: true, value: (row) => row.gain_low, shown: (row) => times(row.gain_low) },
    { title: "Time", number: true, value: (row) => row.duration_s, shown: (row) => duration(row.duration_s) },
    { title: "Egress fees", number: true, value: (row) => row.cost_usd.egress, shown: (row) => usd(row.cost_usd.egress) },
    { title: "VM cost", number: true, value: (row) => row.cost_usd.vm, shown: (row) => usd(row.cost_usd.vm) },
    { title: "Total", number: true, value: (row) => row.cost_usd.total, shown: (row) => usd(row.cost_usd.total) },
    { title: "Cost ratio", number: true, value: (row) => row.cost_ratio, shown: (row) => times(row.cost_ratio) },
    { title: "Round trip", number: true, value: (row) => row.rtt_ms, shown: (row) => ms(row.rtt_ms) },
  ];
  const table = sortable("Each carries everything alone", columns, rows, { order: 1, descending: true, key: (row) => row.name });
  return element("section", { class: "panel wide", "aria-labelledby": "candidates" }, element("h2", { id: "candidates" }, "Candidates"),
    element("p", { class: "muted" }, "As fast as it pays for each; a name leads to the plan with it alone. A sure gain holds at the bounds: the candidate's low, direct's high."), table,
    all && element("p", {}, element("a", { href: all }, "Compare all single relays")));
}

// "Gbit/s per VM" is of one more VM.
const unitOf = (unit) => unit.replace(/^Gbit\/s per /, "");

export function bottleneck(plan) {
  const found = plan.bottlenecks.map((limit) => element("li", {},
    element("strong", {}, `${limit.constraint} at ${limit.region}`),
    `: one more ${unitOf(limit.unit)} brings ${gbps(limit.gain_per_unit)}.`));
  return element("section", { class: "panel", "aria-labelledby": "limits" }, element("h2", { id: "limits" }, "Where the bottleneck is"),
    found.length ? element("ul", {}, found) : element("p", { class: "muted" }, "No cap binds: going faster would not pay under this request's aim and limits."));
}

export function advice(plan) {
  const effect = (each) => (each.cost_usd === 0 ? "free" : `${each.cost_usd < 0 ? "saves " : "+"}${usd(Math.abs(each.cost_usd))}`);
  return element("section", { class: "panel", "aria-labelledby": "advice" }, element("h2", { id: "advice" }, "What would help"),
    plan.advice.length
      ? element("ul", {}, plan.advice.map((each) => element("li", {}, element("strong", {}, each.action), `: ${each.effect} `, element("span", { class: "tag" }, effect(each)))))
      : element("p", { class: "muted" }, "Nothing cheaper than the plan itself."),
    plan.warnings.length > 0 && [element("h3", {}, "Notes"), element("ul", { class: "notes" }, plan.warnings.map((text) => element("li", {}, text)))]);
}

// links: the legs of the direct and of the chosen paths, as /v1/links shows them.
export function basis(plan, links) {
  const { request, snapshot } = plan;
  const columns = [
    { title: "Leg", value: (link) => `${link.src} ${link.dst}`, shown: (link) => element("a", { href: pairAddress(link.src, link.dst) }, `${link.src} → ${link.dst}`) },
    { title: "One VM pair", unit: "Gbit/s", number: true, value: (link) => link.aggregate_gbps.expected, shown: (link) => rate(link.aggregate_gbps.expected) },
    { title: "Bounds", number: true, value: (link) => link.aggregate_gbps.high - link.aggregate_gbps.low, shown: (link) => `${rate(link.aggregate_gbps.low)} to ${rate(link.aggregate_gbps.high)}` },
    { title: "Source", value: (link) => link.aggregate_gbps.source, shown: (link) => element("span", { class: "tag" }, link.aggregate_gbps.source) },
    { title: "Measured", number: true, value: (link) => link.aggregate_gbps.measured_at_s, shown: (link) => ago(link.aggregate_gbps.measured_at_s) },
    { title: "From", value: (link) => link.aggregate_gbps.basis },
  ];
  return element("section", { class: "panel wide", "aria-labelledby": "basis" }, element("h2", { id: "basis" }, "What it rests on"),
    element("p", {}, plan.confidence), sortable("Legs of the direct and of the chosen paths", columns, links),
    facts([["Plan", element("code", {}, plan.plan_id)], ["Snapshot", `${snapshot.id} (${snapshot.source}), as of ${snapshot.as_of}`],
      ["Aim", `${request.objective}${request.objective === "value" ? `, an hour is worth ${request.time_value_usd_per_h === "inf" ? "any sum" : usd(request.time_value_usd_per_h)}` : ""}; margin ${percent(100 * request.margin)}`],
      ["Within", `${request.vms} VM${request.vms > 1 ? "s" : ""} a region, ${request.connections} connections each, relays: ${request.relays}`]]));
}

export function legsOf(plan) {
  const all = [[plan.request.src, plan.request.dst], ...plan.paths.flatMap(({ regions }) => regions.slice(1).map((region, at) => [regions[at], region]))];
  return [...new Map(all.map((leg) => [leg.join(" "), leg])).values()];
}
