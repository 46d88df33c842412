// What the answer to each question looks like. All have a verdict, what binds and would help, and what they
// rest on; the rest is in ANSWERS, by the name of the question.

import {
  RATE, ROUND_TRIP, STEPS, TIME, TOTAL, advice, basis, bottleneck, costOf, drawnMap, frontierTable, pairColumn, pathLinks,
  sideBySide, throughputOf, timeOf, timesOf, verdictPanel, verdictText, vmsAt, vmsOf,
} from "./parts.js";
import { offersPart } from "./offers.js";
import { chart } from "../shared/chart.js";
import {
  barred, bounded, breakable, count, drawn, duration, element, ends, facts, figure, folded, key, link as linked, muted,
  number, pairAddress, pairLink, panel, perGb, percent, places, range, rate, scrolling, small, sortable, tag, times, usd,
  volume, widePanel, words,
} from "../shared/kit.js";
import { mapPanel } from "../world/map.js";

const share = (part) => percent(100 * part);
const sum = (values) => values.reduce((all, each) => all + each, 0);
const stack = (...parts) => element("div", { class: "stack" }, parts);

// context: { request, addressOf, signal, go, commands }.
export async function answerParts(question, plan, context) {
  const { said, look, load = () => ({}), first, main, more, rests } = ANSWERS[question] ?? others;
  const found = { ...context, ...await load(plan, context) };
  const [kind, mark, from, headline] = look(plan);
  const title = said(plan);
  return {
    title, head: verdictPanel(plan, { kind, mark, title, ends: from, headline }),
    body: [first ? first(plan, found, [bottleneck(plan), advice(plan), context.commands])
      : [stack(main(plan, found)), stack(bottleneck(plan), advice(plan), context.commands)], more?.(plan, found),
      basis(plan, ...rests?.(plan, found) ?? [])],
  };
}

// ---- transfer: direct, relayed or split ----

const MARKS = { direct: "→", relay: "⤼", split: "⇉" };

const withRegions = async () => ({ regions: (await places()).regions.filter((region) => region.in_graph) });

const transfer = {
  said: verdictText,
  look: (plan) => [plan.verdict, MARKS[plan.verdict],
    [linked("#open=pair", ends(plan.request.src, plan.request.dst)), `, ${volume(plan.request.volume_gb)}`],
    [throughputOf(plan), ["Time", duration(plan.duration_s), `for ${volume(plan.request.volume_gb)}`], costOf(plan),
      vmsOf(plan)]],
  load: withRegions, first: offersPart,
  rests({ request: { objective, time_value_usd_per_h: hour, margin, vms, connections, relays } }) {
    const worth = objective === "value" ? `, an hour is worth ${hour === null ? "any sum" : usd(hour)}` : "";
    return [[["Objective", `${objective}${worth}; margin ${share(margin)}`], ["Within", `${vms ? `${vms} VM${vms > 1 ? "s" : ""} a region`
      : "number of VMs decided by the plan"}, ${connections} connections each, relays: ${relays}`]]];
  },
};

// ---- broadcast: over which trees a volume reaches its destinations ----

const links = (plan) => plan.trees.flatMap((tree, at) => tree.legs.map((link) => ({ ...link, tree: at + 1 })));

function branches({ legs }, region) {
  const found = legs.filter((link) => link.src === region);
  return found.length > 0 && element("ul", {}, found.map(({ src, dst }) =>
    element("li", {}, pairLink(src, dst), branches({ legs }, dst))));
}

const treesOf = (plan) => folded("trees", plan.trees.length > 1 ? "Trees" : "Tree",
  element("div", { class: "grid" }, plan.trees.map((tree, at) => element("div", {},
    element("h3", {}, `Tree ${at + 1}: ${share(tree.share)} of the volume at ${rate(tree.throughput_gbps)} Gbit/s`),
    branches(tree, plan.request.src)))),
  sortable("Every link of every tree", [
    number("Tree", "tree"), pairColumn("Link"), RATE, number("Connections", "connections", figure),
    number("Egress", "egress_usd_per_gb", perGb),
  ], links(plan)));

// Links that several trees use are one line.
function onMap(plan, regions) {
  const lines = new Map();
  for (const { src, dst, throughput_gbps, egress_usd_per_gb: fee } of links(plan)) {
    const gbps = (lines.get(`${src} ${dst}`)?.gbps ?? 0) + throughput_gbps;
    lines.set(`${src} ${dst}`,
      { src, dst, gbps, values: { fee }, kind: "chosen", said: `${src} to ${dst}: ${rate(gbps)} Gbit/s, ${perGb(fee)}` });
  }
  const trees = plan.trees.length === 1 ? "the tree" : `${plan.trees.length} trees`;
  return drawnMap(regions, [...lines.values()], [plan.request.src, ...plan.destinations.map(({ region }) => region)],
    `${trees} from ${plan.request.src}`);
}

const broadcast = {
  said: ({ verdict, trees }) => (verdict === "direct" ? "Send each copy direct"
    : verdict === "tree" ? "Forward copies over one tree" : `Forward copies over ${trees.length} trees at once`),
  look: (plan) => [...(plan.verdict === "direct" ? ["direct", "→"] : ["relay", "⤼"]),
    `${plan.request.src} → ${plan.destinations.map(({ region }) => region).join(", ")}, ${volume(plan.volume_gb)} each`,
    [throughputOf(plan), timeOf(plan), costOf(plan), vmsOf(plan)]],
  load: withRegions,
  main: (plan) => {
    // Relays and destinations that send on what they receive.
    const senders = new Set(links(plan).map((link) => link.src));
    senders.delete(plan.request.src);
    return sideBySide([
      ["Each copy direct", plan.direct, "direct"], ["All through one region", plan.best_relay, "relay"],
      ["Best forwarding", plan.optimum, "relay"], [`Chosen: ${plan.verdict}`, { ...plan, relays: [...senders] }, "chosen"],
    ]);
  },
  more: (plan, { regions }) => [
    panel("arrivals", "When each has everything", sortable("Destinations", [
      words("Destination", "region"), number("After", "duration_s", duration),
    ], plan.destinations, { order: 1 })),
    frontierTable(plan.frontier,
      [number("Trees", "trees"), words("Forwarded by", ({ relays }) => relays.join(", ") || "–")]),
    mapPanel(plan.trees.length > 1 ? "The trees on the map" : "The tree on the map", onMap(plan, regions)), treesOf(plan),
  ],
};

// ---- shuffle: what every pair keeps to ----

const MOST_NAMES = 30;
const relayedShare = (pair) => sum(pair.paths.filter((path) => path.regions.length > 2).map((path) => path.share));

// Rates from row to column, as dark as they are high; what is relayed in part has a frame.
function rateMatrix({ pairs }) {
  const [sources, targets] = ["src", "dst"].map((end) => [...new Set(pairs.map((pair) => pair[end]))].sort());
  if (sources.length > MOST_NAMES || targets.length > MOST_NAMES) return null;
  const by = new Map(pairs.map((pair) => [`${pair.src} ${pair.dst}`, pair]));
  const most = Math.max(...pairs.map((pair) => pair.throughput_gbps));
  const cell = (src, dst) => {
    const pair = by.get(`${src} ${dst}`);
    if (!pair) return element("td", { class: "number none" });
    const relayed = relayedShare(pair);
    const title = `${src} to ${dst}: ${volume(pair.volume_gb)}, ${share(relayed)} relayed`;
    const made = element("td", { class: `number rate-cell${relayed ? " relayed" : ""}` },
      element("a", { href: pairAddress(src, dst), title }, rate(pair.throughput_gbps)));
    made.style.setProperty("--share", `${Math.round((40 * pair.throughput_gbps) / most)}%`);
    return made;
  };
  const head = (scope, text) => element("th", { scope }, text);
  return panel("matrix", "Rates to keep to, Gbit/s", scrolling("Rates by pair", element("table", { class: "rates" },
    element("caption", {}, "From the row to the column; a pair with a frame is relayed, all or in part."),
    element("thead", {}, element("tr", {}, element("td"), targets.map((name) => head("col", breakable(name))))),
    element("tbody", {}, sources.map((src) =>
      element("tr", {}, head("row", src), targets.map((dst) => cell(src, dst))))))));
}

const shuffle = {
  said: (plan) => (plan.verdict === "direct" ? "Send every pair direct, at these rates" : "Relay a part of it"),
  look(plan) {
    const regions = new Set(plan.pairs.flatMap((pair) => [pair.src, pair.dst]));
    return [...(plan.verdict === "direct" ? ["direct", "→"] : ["split", "⇉"]),
      `${count(plan.pairs.length)} pairs among ${regions.size} regions, ${volume(plan.volume_gb)}`,
      [timeOf(plan), costOf(plan), vmsOf(plan),
        ["Relayed", share(plan.relayed_share), `not before ${duration(plan.bound_s)}, proven`]]];
  },
  main: (plan) => [sideBySide([["All at once, no plan", plan.equal_share, "direct"],
    ["Best direct rates", plan.direct, "direct"], [`Chosen: ${plan.verdict}`, plan, "chosen"]]), rateMatrix(plan)],
  more: (plan) => [frontierTable(plan.frontier, [number("Relayed", "relayed_share", share)]),
    folded("pairs", "Pairs", sortable("Every pair, and over what it goes", [
      pairColumn("Pair"), number("Volume", "volume_gb", volume), RATE,
      number("Ends after", "duration_s", duration),
      number("Egress", (pair) => sum(pair.paths.map((path) => path.share * path.egress_usd_per_gb)), perGb),
      words("Paths", relayedShare, (_, pair) => pair.paths.map((path) =>
        element("div", {}, share(path.share), " ", pathLinks(path.regions)))),
    ], plan.pairs, { order: 3, descending: true }))],
};

// ---- schedule: when each transfer sends, against its deadline ----

const MOST_LINES = 3;
const VERDICTS = { admitted: "good", refused: "bad", "best effort": "muted" };
const COLOURS = ["chosen", "relay", "cap"];
const sends = ({ regions }, region) => regions.slice(0, -1).includes(region);
const periodPaths = ({ periods }) => periods.flatMap((period) => period.paths.map((path) => ({ ...period, ...path })));

// What leaves regions over time, in steps: what the rates of all periods add up to between two ends.
function sending(transfers, regions) {
  const parts = transfers.flatMap(periodPaths);
  const moments = [...new Set(parts.flatMap((part) => [part.start_s, part.end_s]))].sort((a, b) => a - b);
  return [moments, ...regions.map((region) => moments.map((time) => sum(parts
    .filter((part) => sends(part, region) && part.start_s <= time && time < part.end_s).map((part) => part.throughput_gbps))))];
}

// One row a transfer: when it sends, where its volumes wait, and its deadline, on the time of the chart below.
function rows({ transfers }, from, end) {
  const at = (time_s) => ((time_s - from) / (end - from)) * 1000;
  const bar = (kind, start, stop, y, height, said) => drawn("rect", {
    class: kind, x: Math.min(998, at(start)), width: Math.max(2, at(stop) - at(start)), y, height,
  }, drawn("title", {}, said));
  const during = ({ start_s: start, end_s: stop }) => `from ${duration(start)} to ${duration(stop)}`;
  const isRelayed = (each, { paths }) => paths.some(({ regions }) => regions.join() !== [each.src, each.dst].join());
  const line = (each) => drawn("svg", {
    viewBox: "0 0 1000 24", preserveAspectRatio: "none", role: "img", "aria-label": `${each.id}: ${each.verdict}`,
  },
  each.stored.map((stored) => bar("stored", stored.start_s, stored.end_s, 10, 4,
    `${each.id}: up to ${volume(stored.most_gb)} at ${stored.region} ${during(stored)}`)),
  each.periods.map((period) => bar(isRelayed(each, period) ? "sends relayed" : "sends", period.start_s, period.end_s, 4, 16,
    `${each.id}: ${rate(period.throughput_gbps)} Gbit/s ${during(period)}`)),
  each.deadline_s !== null && bar(`deadline ${each.verdict === "refused" ? "bad" : "good"}`, each.deadline_s, each.deadline_s,
    1, 22, `${each.id}: deadline ${duration(each.deadline_s)}, ${each.verdict}`));
  return element("ul", { class: "rows" }, transfers.map((each) =>
    element("li", {}, element("span", { title: each.id }, each.id), line(each))));
}

function gantt(plan) {
  const [from, end] = [plan.now_s, Math.max(plan.end_s, ...plan.transfers.map((each) => each.deadline_s ?? 0))];
  const [, unit_s, unit] = STEPS.find(([least]) => end >= least);
  const senders = plan.busiest.map(({ region }) => region)
    .filter((region) => plan.transfers.flatMap(periodPaths).some((path) => sends(path, region))).slice(0, MOST_LINES);
  const busy = () => sortable("How full the regions' VMs are", [
    words("Region", "region"), words("Fullest limit", "constraint"),
    number("At its peak", "peak_share", share), number("Mean", "mean_share", share),
  ], plan.busiest, { order: 2, descending: true });
  const drawing = chart((width) => ({
    height: 170, isStill: true,
    values: sending(plan.transfers, senders).map((each, at) => (at ? each : each.map((time) => time / unit_s))),
    x: { title: `Time, ${unit}`, range: () => [from / unit_s, end / unit_s] },
    y: { title: "sends, Gbit/s", size: width < 500 ? 48 : 148, range: (_, low, high) => [0, (high || 1) * 1.1] },
    series: senders.map((_, at) => ({ kind: "steps", color: COLOURS[at], dash: at ? [6, 3 * at] : undefined })),
  }), { title: `When ${plan.transfers.length} transfers send, with their deadlines, and what `
    + `${senders.join(", ") || "no region"} sends over time.`, figures: busy });
  return widePanel("gantt", "When each sends", element("div", { class: "gantt" },
    element("p", { class: "legend" }, key("of-chosen", "direct"), key("of-relay", "relayed in part"), key("kept", "deadline kept"),
      key("missed", "deadline refused")), rows(plan, from, end),
    element("p", { class: "legend" }, senders.map((region, at) => key(`of-${COLOURS[at]}`, `${region} sends`))), drawing));
}

function remedies({ remedies: found }) {
  if (!found) return "";
  const { vms = {} } = found.more_vms ?? {};
  return [`a deadline after ${duration(found.deadline_s)}`,
    Object.entries(vms).map(([region, more]) => `${more} more VMs at ${region}`).join(", "),
    found.volume_gb > 0 && `at most ${volume(found.volume_gb)} by its deadline`].filter(Boolean).join("; or ");
}

function stored(plan) {
  const found = plan.transfers.flatMap((each) => each.stored.map((volumes) => ({ id: each.id, ...volumes })));
  return found.length > 0 && panel("stored", "Stored at relays", sortable("What lies where, and when", [
    words("Transfer", "id"), words("At", "region"), number("From", "start_s", duration), number("To", "end_s", duration),
    number("At most", "most_gb", volume), number("Cost", "usd", usd),
  ], found));
}

const reached = (value, { objective }) => (objective === "value" ? usd(value) : count(value));

const schedule = {
  said: ({ admitted, refused, best_effort: rest }) =>
    [`${admitted} admitted`, refused && `${refused} refused`, rest && `${rest} best effort`].filter(Boolean).join(", "),
  look: (plan) => [...(plan.refused ? ["relay", "◐"] : ["direct", "●"]),
    `${count(plan.transfers.length)} ${plan.transfers.length === 1 ? "transfer" : "transfers"}, ${volume(plan.volume_gb)}`,
    [["Ends after", duration(plan.end_s), `from ${duration(plan.now_s)}`], costOf(plan), vmsOf(plan),
      ["Relayed", share(plan.relayed_share), ""]]],
  main: (plan) => [stored(plan), panel("admission", "Admission", sortable("By priority, in the order decided", [
    number("Priority", (each) => -each.priority, (_, each) => each.priority),
    number("Admitted", "admitted", (admitted, each) => `${admitted} of ${each.transfers}`),
    number("Reached", "reached", reached), number("No choice exceeds", "bound", reached),
  ], plan.admission))],
  more: (plan) => [gantt(plan), widePanel("transfers", "Transfers", sortable("What becomes of each", [
    words("Transfer", "id"),
    words("From, to", ({ src, dst }) => `${src} ${dst}`, (_, { src, dst }) => ends(src, dst)),
    number("Volume", "volume_gb", volume), words("Verdict", "verdict", (verdict) => tag(verdict, VERDICTS[verdict])),
    number("Ends after", "end_s", duration),
    number("Deadline", "deadline_s", (time_s) => (time_s === null ? "none" : duration(time_s))),
    number("Egress", "egress_usd", usd), words("What would admit it", remedies),
  ], plan.transfers, { order: 4 }))],
};

// ---- placements: where to reduce, and on which VM to run which task ----

const reduce = {
  said: ({ fractions }) => `Reduce ${Object.entries(fractions).sort(([, one], [, other]) => other - one).slice(0, 3)
    .map(([region, part]) => `${share(part)} in ${region}`).join(", ")}`,
  look: (plan) => ["direct", "◔",
    `${volume(plan.shuffle_gb)} to shuffle between ${Object.keys(plan.request.input_gb).length} regions`,
    [timeOf(plan), costOf(plan), vmsOf(plan), ["Between regions", volume(plan.moved_gb), `of ${volume(plan.shuffle_gb)}`]]],
  main(plan) {
    const inputs = plan.request.input_gb;
    const total = sum(Object.values(inputs));
    const bar = (label) => (part, { region }) => barred(part, `${label} in ${region}`, share(part));
    const found = [...new Set([...Object.keys(inputs), ...Object.keys(plan.fractions)])]
      .map((region) => ({ region, has: (inputs[region] ?? 0) / total, gets: plan.fractions[region] ?? 0 }));
    return [panel("fractions", "Where the data is, and where it is reduced", sortable("By region", [
      words("Region", "region"), number("Of the input", "has", bar("Of the input")), number("Reduces", "gets", bar("Reduced")),
    ], found, { order: 2, descending: true })),
    panel("options", "Side by side", sortable("This placement, the other assumption, and what is done without a plan", [
      words("Placement", "name", (name) => [name, name === plan.links && [" ", tag("chosen", "")]]),
      TIME, number("It promises", "promised_s", duration), number("Between regions", "moved_gb", volume), TOTAL,
    ], plan.options, { order: 1 }))];
  },
};

const tasks = {
  said: (plan) => `${count(Object.keys(plan.assignment).length)} tasks on `
    + `${plan.vms.filter((vm) => vm.tasks.length).length} of ${plan.vms.length} VMs`,
  look: (plan) => ["direct", "▦", `${volume(plan.moved_gb + plan.local_gb)} to exchange`, [
    ["Time", duration(plan.duration_s), plan.proven ? "none is quicker, proven" : `not before ${duration(plan.bound_s)}, proven`],
    costOf(plan), ["Between VMs", volume(plan.moved_gb), `${volume(plan.local_gb)} stay inside one`],
    ["Greedy rule", duration(plan.greedy_s), "what it reaches alone"],
  ]],
  main: (plan) => panel("machines", "VMs", sortable("What each VM runs and sends", [
    words("VM", "id"), words("Region", "region"),
    words("Tasks", "tasks", (all) => element("span", { class: "row" }, all.map((task) => tag(task, "")))),
    number("CPUs", (vm) => vm.cpus_used / vm.cpus, (part, vm) =>
      barred(part, `CPUs of ${vm.id} in use`, `${figure(vm.cpus_used)} of ${figure(vm.cpus)}`)),
    number("Sends", "sent_gb", volume), number("Receives", "received_gb", volume), number("Busy", "busy_s", duration),
    words("Limit", (vm) => vm.limit || "–"),
  ], plan.vms, { order: 6, descending: true })),
};

// ---- re-plan, and comparison of regions and VM types ----

const replan = {
  said: ({ verdict }) => (verdict === "keep" ? "Keep to the plan" : "Change the plan"),
  look(plan) {
    const best = plan[plan.verdict] ?? plan.change;
    const planned = plan.planned_gbps === null ? "" : `${rate(plan.planned_gbps)} Gbit/s were planned`;
    return [...(plan.verdict === "keep" ? ["direct", "●"] : ["relay", "↻"]),
      `${plan.kind} ${plan.plan_id}, after ${duration(plan.elapsed_s)}`, [
        ["Left", volume(plan.remaining_gb), ""],
        best && ["Time left", duration(best.duration_s), range(best.duration_s_low, best.duration_s_high, duration)],
        best && ["Cost left", ...costOf(best).slice(1)],
        plan.observed_gbps !== null && ["So far", `${rate(plan.observed_gbps)} Gbit/s`, planned],
      ]];
  },
  main({ keep, change, cost_of_change: cost, gain, needed_gain: needed }) {
    return [sideBySide([["Keep", keep, "direct"], ["Change", change, "chosen"]]), panel("change", "What changing takes", cost ? facts([
      ["VMs to start", vmsAt(cost.vms_to_start) || "none"], ["VMs to stop", vmsAt(cost.vms_to_stop) || "none"],
      ["Until they run", duration(cost.wait_s)], ["Getting up to speed", duration(cost.ramp_up_s)], ["Cost", usd(cost.usd)],
      ["Gain", `${times(gain.expected)} (${range(gain.low, gain.high, times)}); ${times(needed)} at the low bound are needed`],
    ]) : muted("There is no other plan to change to."))];
  },
};

const named = ({ region, vm_type: type }) => (type ? `${region} with ${type}` : region);

const compared = {
  said: ({ candidates: [best] }) => named(best),
  look(plan) {
    const [best] = plan.candidates;
    const { direction, volume_gb: gb, regions } = plan.request;
    return ["direct", "①", `${volume(gb)} ${direction} ${regions.join(", ")}`,
      [["Throughput", `${rate(best.throughput_gbps)} Gbit/s`, best.limit], timeOf(best), costOf(best),
        ["Compared", count(plan.compared), "regions and VM types"]]];
  },
  main: (plan) => panel("providers", "The best of each provider", sortable("Providers", [
    words("Provider", "provider"), words("Candidate", named), number("Rank", "rank"),
  ], plan.providers, { order: 2 })),
  more(plan) {
    const most = Math.max(...plan.candidates.map((each) => each.duration_s_high));
    return widePanel("candidates", "Candidates", sortable(`The best ${plan.candidates.length} of ${count(plan.compared)}`, [
      number("Rank", "rank", (rank, { rank_low: low, rank_high: high }) => (low === high ? rank : `${rank} (${low} to ${high})`)),
      words("Region", "region"), words("VM type", (each) => each.vm_type ?? "–"),
      RATE, number("Time", "duration_s", (time_s, each) => [element("div", {}, duration(time_s)),
        small(bounded(timesOf(each), "Time", duration, { most, width: 90 }))]),
      TOTAL, ROUND_TRIP, number("For a dollar", "gb_per_usd", figure, "GB"), number("Best in", "probability", share),
      words("Rests on", "source", (source) => tag(source, "")),
    ], plan.candidates));
  },
};

// ---- a question of another distribution: its lists as tables ----

const SHARED = ["fees", "resolutions"];
const isList = ([name, rows]) => !SHARED.includes(name) && Array.isArray(rows) && typeof rows[0] === "object";
const spaced = (name) => `${name[0].toUpperCase()}${name.slice(1)}`.replaceAll("_", " ");
const plain = (value) => (typeof value === "number" ? figure(value) : typeof value === "string" ? value : JSON.stringify(value));

const others = {
  said: () => "Answer",
  look: () => ["direct", "●", "", []],
  main: (plan) => Object.entries(plan).filter(isList).map(([name, rows]) => panel(name, spaced(name),
    sortable(`${count(rows.length)} in all`, Object.keys(rows[0]).map((key) => words(spaced(key), key, plain)), rows))),
};

const ANSWERS = {
  transfer, broadcast, shuffle, schedule, "place-reduce": reduce, "place-tasks": tasks, replan, comparison: compared,
};
