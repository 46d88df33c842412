// What answers have in common: the verdict, what binds, what would help, options side by side, the basis.

import {
  UNKNOWN, age, band, bounded, breakable, colourOf, count, duration, element, facts, figure, folded, link, ms, muted, number,
  pairAddress, pairLink, panel, range, rate, secondary, small, sortable, table, tag, times, toCheck, usd, withCode, words,
} from "../shared/kit.js";

export const vmCount = (vms) => Object.values(vms).reduce((sum, each) => sum + each, 0);
export const vmsAt = (vms) => Object.entries(vms).map(([region, each]) => `${each} at ${region}`).join(", ");
// Figures of an answer with their bounds, which have names of their own: duration_s_low.
const estimateOf = (name) => ({ [name]: expected, [`${name}_low`]: low, [`${name}_high`]: high }) => ({ low, expected, high });
const ratesOf = estimateOf("throughput_gbps");
export const timesOf = estimateOf("duration_s");

// Figures of the line below a verdict that several answers have: [name, value, what stands below it].
export const throughputOf = (answer) => ["Throughput", `${rate(answer.throughput_gbps)} Gbit/s`,
  bounded(ratesOf(answer), "Throughput", rate, { unit: " Gbit/s" })];
export const timeOf = (answer) => ["Time", duration(answer.duration_s), bounded(timesOf(answer), "Time", duration)];
export const costOf = ({ cost_usd: cost }) => ["Cost", usd(cost.total), `${usd(cost.egress)} egress, ${usd(cost.vm)} VMs`];
export const vmsOf = ({ vms }) => ["VMs", count(vmCount(vms)), vmsAt(vms)];

// What the last transfers reached of their plans' rates.
const asAchieved = ({ of, median, low, high, transfers, duration_s: time }) =>
  `As achieved: ${rate(median)} of the planned rate (${range(low, high, rate)}) by the last ${transfers} ` +
  `${of === "label" ? "of this label" : "between these regions"}, which takes ${duration(time)}.`;

export function verdictPanel(answer, { kind, ends, mark, title, headline }) {
  const priced = headline.find((each) => each && each[0].startsWith("Cost"))?.[0];
  const [prices, links] = [true, false].map((is) => answer.outdated.filter((text) => text.startsWith("The egress price") === is));
  return element("section", { class: `panel verdict verdict-${kind}`, "aria-labelledby": "verdict" },
    element("p", { class: "ends muted" }, ends),
    element("h2", { id: "verdict", class: "badge" }, element("span", { class: "mark", "aria-hidden": "true" }, mark), title),
    element("p", { class: "reason" }, answer.reason),
    element("ul", { class: "headline" }, headline.filter(Boolean).map(([name, value, more]) => element("li", {},
      element("span", { class: "muted" }, name), element("strong", {}, value), small(more), name === priced && toCheck(prices)))),
    !priced && toCheck(prices),
    links.map((text) => element("p", { class: colourOf("stale") }, withCode(text))),
    answer.as_achieved && muted(asAchieved(answer.as_achieved)),
    answer.confidence && muted(answer.confidence));
}

// "Gbit/s per VM" is of one more VM; "s per VM, at the margin" is time saved.
function gain({ unit, gain_per_unit: gained }) {
  const [of, what = "unit"] = unit.split(" per ");
  const [thing, ...more] = what.split(", ");
  return `: one more ${thing} ${of === "s" ? "saves" : "brings"} ${figure(gained)} ${of}${more.map((text) => `, ${text}`).join("")}.`;
}

// What binds may be a link: its two ends with an arrow between them.
const isLink = (place) => place.includes(" -> ");
const listed = (items, none) => (items.length ? element("ul", {}, items.map((each) => element("li", {}, each))) : muted(none));

export const bottleneck = ({ bottlenecks }) => bottlenecks && secondary("limits", "Where the bottleneck is", listed(
  bottlenecks.map((limit) => [element("strong", {}, limit.constraint, isLink(limit.region) ? " " : " at ", limit.region), gain(limit)]),
  "No cap binds: going faster would not pay under this request's objective and limits."));

const effect = (each) => (each.cost_usd === 0 ? "free" : `${each.cost_usd < 0 ? "saves " : "+"}${usd(Math.abs(each.cost_usd))}`);

export function advice(answer) {
  const { one_more_vm: vms = [], offers } = answer;
  const offered = (answer.advice ?? []).filter((each) => !offers || !each.outcome); // those are offers
  const others = answer.warnings.filter((text) => !answer.outdated.includes(text));
  if (offers ? !offered.length && !others.length : !answer.advice && !vms.length && !others.length) return null;
  return secondary("advice", offers && !offered.length ? "Notes" : "What would help",
    listed([
      ...offered.map((each) => [element("strong", {}, each.action), `: ${each.effect} `, tag(effect(each), "")]),
      ...vms.map((each) => [element("strong", {}, `One more VM at ${isLink(each.region) ? "both ends of " : ""}${each.region}`),
        `: ends at least ${duration(each.saved_s)} sooner, after ${duration(each.duration_s)}.`]),
    ], offers ? "" : "Nothing cheaper than the plan itself."),
    others.length > 0 && [(!offers || offered.length > 0) && element("h3", {}, "Notes"), listed(others.map(withCode))]);
}

// Columns that several tables have.
export const RATE = number("Throughput", "throughput_gbps", rate, "Gbit/s");
export const [TIME, TOTAL] = [number("Time", "duration_s", duration), number("Total", "cost_usd.total", usd)];
export const [FEES, VM_COST] = [number("Egress fees", "cost_usd.egress", usd), number("VM cost", "cost_usd.vm", usd)];
export const ROUND_TRIP = number("Round trip", "rtt_ms", ms);
export const pairColumn = (title) => words(title, ({ src, dst }) => `${src} ${dst}`, (_, { src, dst }) => pairLink(src, dst));

// columns: those of a question's points besides time, cost and VMs.
export const frontierTable = (points = [], columns = []) => points.length > 1 && secondary("frontier", "Cost and time",
  sortable("Plans that nothing beats in both", [TIME, TOTAL, number("VMs", ({ vms }) => vmCount(vms)), ...columns], points));

// more: further facts; links: a table of what it rests on.
export const basis = ({ plan_id: id, snapshot }, more = [], links = null) => folded("basis", "What it rests on", links, facts([
  ["Plan", element("code", {}, id)],
  ["Snapshot", `${snapshot.id} (${snapshot.source}), as of ${snapshot.as_of}`], ...more,
]));

// Several options for the same, as columns: [title, option or null, class]. What the others are compared
// with comes first; a row that no option knows is left out.
export const sideBySide = (options, notes = []) =>
  secondary("compared", "Side by side", optionTable(options), notes.map((note) => muted(note)));

// Options may have rows of their own: facts, [name, text].
export function optionTable(options) {
  const known = options.filter(([, option]) => option?.facts || (option?.duration_s ?? null) !== null);
  const [[, first]] = known;
  const most = Math.max(...known.map(([, option]) => option.throughput_gbps_high ?? option.throughput_gbps));
  const ratio = (one, other) => (one && other ? times(one / other) : undefined);
  const rows = [
    ...(first.facts ?? []).map(([name], at) => [name, (option) => option.facts[at][1]]),
    ["Throughput", (option) => option.throughput_gbps && [`${rate(option.throughput_gbps)} Gbit/s`,
      option.throughput_gbps_low && band(ratesOf(option), most, "Throughput with its bounds")]],
    ["Bounds", (option) => option.throughput_gbps_low && range(option.throughput_gbps_low, option.throughput_gbps_high, rate)],
    ["Time", (option) => duration(option.duration_s)],
    ["Rate, times the first's", (option) => ratio(option.throughput_gbps, first.throughput_gbps)],
    ["Time, times the first's", (option) => ratio(option.duration_s, first.duration_s)],
    ["Egress fees", (option) => usd(option.cost_usd?.egress)],
    ["VM cost", (option) => usd(option.cost_usd?.vm)],
    ["Total cost", (option) => element("strong", {}, usd(option.cost_usd?.total))],
    ["Cost, times the first's", (option) => ratio(option.cost_usd?.total, first.cost_usd?.total)],
    ["Round trip", (option) => option.rtt_ms && ms(option.rtt_ms)],
    ["Forwarded by", (option) => option.relays?.join(", ")],
    ["Connections", ({ connections: opened }) => (Array.isArray(opened) || Number(opened)) && [opened].flat().map(figure).join(" + ")],
    ["VMs", ({ vms }) => vms && Object.entries(vms).map(([region, each]) => element("div", {}, `${each} at `, breakable(region)))],
  ].filter(([, shown]) => known.some(([, option]) => shown(option)));
  return table("compared", "Against the first", [words("", ([name]) => name),
    ...known.map(([title, option, kind]) => words(title, ([, shown]) => shown(option) || UNKNOWN, undefined, `number of-${kind}`))], rows);
}

// What a plan says, in figures and tables that several parts of pages show.

export const relaysOf = (plan) => plan.paths.filter((path) => path.regions.length === 3).map((path) => path.regions[1]);
export const hasDirect = (plan) => plan.paths.some((path) => path.regions.length === 2);

export function verdictText(plan) {
  const relays = relaysOf(plan);
  const over = hasDirect(plan) ? ["the direct path", ...relays] : relays;
  return { direct: "Send it direct", relay: `Relay it through ${relays[0]}` }[plan.verdict]
    ?? `Split it over ${over.join(over.length === 2 ? " and " : ", ")}`;
}

export const linksAlong = (regions) => regions.slice(1).map((region, at) => [regions[at], region]);

export function pathLinks(regions) {
  const name = (region) => element("span", { class: "name" }, region);
  const arrow = ([src, dst]) => element("a", { href: pairAddress(src, dst), "aria-label": `to, by the pair ${src} to ${dst}` }, "→");
  return [name(regions[0]), linksAlong(regions).map((link) => [" ", arrow(link), " ", name(link[1])])];
}

// Those of an offer, each once.
export const pairsOf = ({ paths }) => paths.flatMap(linksAlong);

// Columns of a table of links, as /v1/links shows them: what one VM pair reaches, on one scale.
export function rateColumns(links) {
  const most = Math.max(...links.map((link) => link.aggregate_gbps.high));
  return [
    number("One VM pair", "aggregate_gbps.expected", rate, "Gbit/s"),
    number("Bounds", ({ aggregate_gbps: { low, high } }) => high - low,
      (_, { aggregate_gbps: estimate }) => bounded(estimate, "One VM pair, Gbit/s", rate, { most, width: 90 })),
  ];
}

// What figures of links rest on.
export const linksTable = (caption, links) => sortable(caption, [
  pairColumn("Link"), ...rateColumns(links), words("Source", "aggregate_gbps.source", (source) => tag(source, "")),
  number("Measured", "aggregate_gbps.measured_at_s", (_, link) => age(link.aggregate_gbps)),
  words("From", "aggregate_gbps.basis"),
], links);

export const placeOf = (region) => [region.id, region.city].filter(Boolean).join(", ");

// What the shared map shows of a plan: the links of all offers, each once; regions: of /v1/regions.
export function planOnMap({ offers, best_relay: best, request: { src: first, dst: last } }, regions) {
  const lines = new Map();
  for (const offer of offers) {
    const kind = offer.recommended ? "chosen" : offer.verdict === "direct" ? "direct" : offer.relays[0] === best?.relay ? "best relay" : "other";
    for (const [src, dst] of pairsOf(offer)) {
      if (!lines.has(`${src} ${dst}`)) {
        lines.set(`${src} ${dst}`, { src, dst, kind, gbps: offer.throughput_gbps ?? 0, values: {},
          said: `${src} to ${dst}: ${offer.name}${kind === "other" ? "" : ` (${kind})`}, ${rate(offer.throughput_gbps)} Gbit/s` });
      }
    }
  }
  return drawnMap(regions, [...lines.values()], [first, last], `${offers.length} ways from ${first} to ${last}`);
}

// What the shared map shows: lines, with names at their ends and at others' places.
export const drawnMap = (regions, lines, ends, label) => ({
  regions, lines, kindTitle: "Path", said: placeOf, label: `Map of ${label}: ${lines.length} links`,
  marked: [...new Set([...ends, ...lines.filter((line) => line.kind !== "other").flatMap((line) => [line.src, line.dst])])],
});

export const STEPS = [[172800, 86400, "days"], [7200, 3600, "hours"], [180, 60, "minutes"], [0, 1, "seconds"]];
