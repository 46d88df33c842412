// Now: what is wrong and what it costs, whether what is known can be trusted, and the transfers under way; or
// one of them. What colours say, texts say too.

import { described, shifts } from "../fleet/changes.js";
import {
  UNKNOWN, address, all, askAddress, barred, box, cardTable, choice, commands, content, count, duration, element, facts,
  gbps, get, link, linksTile, livePage, more, muted, number, pairLink, partsOf, percent, rate, redraw, replace,
  restsOn, since, small, soon, stateTag, tag, tiles, usd, volume, when, words,
} from "../shared/kit.js";

const DAY_S = 86400;
const TRANSFER = "transfer"; // of events
const GATHER_MS = 300; // many programs report at once: one question for all of them
const RENEW_MS = 15_000; // a transfer falls silent or late, and a day's probes go on, without an event
const chosen = Object.fromEntries(new URLSearchParams(location.search));
const whole = (seconds) => duration(Math.round(Math.abs(seconds)));
const at = (seconds) => (seconds === null ? UNKNOWN : when(Math.round(seconds)));

// Asks again soon after an event of a transfer; events that come meanwhile are answered with it.
let gathering = null;
function heard({ kind }, again) {
  if (kind === TRANSFER) gathering ??= setTimeout(() => {
    gathering = null;
    again();
  }, GATHER_MS);
}

// ---- a transfer in words: state, path, pace and end against its plan and its deadline ----

const HOLDS = { lost: "hold lost", lapsed: "holds nothing" };
const stateOf = ({ health, state, is_slow: slow, is_late: late, hold }) => stateTag(health, state, slow && "slow", late && "late", HOLDS[hold]);
const transferLink = ({ id, label }) => link(address("now", { id }), label || id);

function route({ src, dst, via, expected }) {
  const several = via === null && expected?.paths.length;
  return [pairLink(src, dst), small(several ? `over ${expected.paths.length} paths`
    : via === "direct" ? "direct" : via ? `relayed by ${via}` : "path not known")];
}

const progress = ({ id, moved_gb: moved, volume_gb: all, share }) => barred(share,
  `Part of transfer ${id} that has arrived`, `${volume(moved)} of ${volume(all)} (${Math.floor(100 * share)} %)`);

// What it has now, or had on the whole; "slow" is below the low bound of its plan.
function pace({ rate_gbps: now, mean_gbps: mean, expected, state }) {
  const had = state === "running" ? now : mean;
  const { throughput_gbps: planned = null, throughput_gbps_low: low } = expected ?? {};
  const least = low === null ? "" : `, ${rate(low)} at least`;
  return [gbps(had), had !== null && planned !== null && small(`of ${rate(planned)} Gbit/s planned${least}`)];
}

// When it ends or ended; against its deadline if it has one, else against its plan.
function ending({ state, ended_s: ended, forecast_end_s: forecast, planned_end_s: planned, deadline_at_s: deadline, is_late: late }) {
  const [end, beside] = [ended ?? forecast, deadline ?? planned];
  const isUnderWay = state === "running" || state === "silent";
  const told = end === null ? UNKNOWN : ended === null ? left(end) : since(ended);
  const gap = end !== null && beside !== null && (ended === null ? isUnderWay : state === "finished")
    && `${whole(end - beside)} ${end > beside ? "after" : "before"} its ${deadline === null ? "plan" : "deadline"}`;
  // Without a forecast, as of one that is silent, the deadline still stands.
  const due = end === null && deadline !== null && isUnderWay && element("small", { class: late && "bad" },
    deadline * 1000 < Date.now() ? "its deadline is over: " : `deadline ${left(deadline)}: `, at(deadline));
  return [told, end !== null && small(at(end)), due, gap && element("small", { class: late ? "bad" : "muted" }, gap)];
}

const left = (at_s) => (at_s * 1000 < Date.now() ? "any moment" : `in ${duration(Math.ceil(at_s - Date.now() / 1000))}`);

// ---- all of it ----

const ENDS = [["ended", "all"], ["finished"], ["failed"], ["cancelled"]].map(([state, text = state]) => [state, text]);
const [FEW, PAGE] = [5, 25];
// The months of which plans are kept, and with them what transfers saved.
const monthStart = (month, later = 0) => Date.UTC(month.slice(0, 4), month.slice(5) - 1 + later);
const MONTHS = [0, -1, -2].map((later) => new Date(monthStart(new Date().toISOString().slice(0, 7), later)).toISOString().slice(0, 7));
const spanOf = (month) => month && { since_s: monthStart(month) / 1000, until_s: monthStart(month, 1) / 1000 };
const MOST_CHANGES = 3;

function nowPage() {
  const parts = partsOf("wrong", "tiles", "in-flight", "pools", "changed", "ended");
  const { wrong, tiles: figures, changed, "in-flight": flying, ended } = parts;
  const shown = { flying: PAGE, ended: FEW, state: chosen.state ?? "ended", month: /^\d{4}-\d\d$/.exec(chosen.month)?.[0] ?? "" };
  const newest = (state, most, span) => all("v1/transfers", "transfers", { state, limit: Math.min(most, 1000), ...span }, { most });
  const again = (changes) => {
    const { state, month } = Object.assign(shown, changes);
    history.replaceState(null, "", address("now", { state: state === "ended" ? "" : state, month }));
    return renew();
  };
  async function refresh() {
    const { state, month, flying: most } = shown;
    const [now, past, found, trouble, { pools }, { watch }, changes] = await Promise.all([
      newest("in-flight", most), newest(state, shown.ended, spanOf(month)), get("v1/overview"), get("v1/incidents", spanOf(month)),
      get("v1/pools"), get("v1/watch"), get("v1/changes", { since_s: DAY_S, source: "measured", limit: MOST_CHANGES }),
    ]);
    restsOn(now.snapshot);
    health({ ...found, watch }, trouble, changes);
    const isNew = !now.transfers.length && !past.transfers.length && state === "ended" && !month;
    redraw(flying, [isNew, now.transfers, now.next_cursor],
      () => (isNew ? nothingYet() : inFlight(now, () => again({ flying: most + PAGE }))));
    redraw(parts.pools, pools, () => pools.length > 0 && poolsOf(pools));
    redraw(ended, [isNew, past.transfers, past.next_cursor, state, month], () => !isNew && itsEnd(past, shown, again));
  }
  function health(found, trouble, changes) {
    const { knowledge, events, checked_at_s: _at, measuring, watch: _, links_health: links, ...others } = found;
    const isEmpty = found.snapshot.source === "baseline";
    const isQuiet = !trouble.incidents.length && !trouble.transfers.length;
    const { stale = 0 } = others.transfers;
    redraw(wrong, [trouble.incidents, trouble.transfers, links, isEmpty, stale],
      () => !(isEmpty && isQuiet && !stale) && incidentsOf(trouble, links, stale));
    redraw(figures, [isEmpty, knowledge, measuring, links, others, trouble.saved, shown.month],
      () => !isEmpty && tilesOf({ ...found, saved: { ...trouble.saved, month: shown.month } }));
    // The time that is compared with moves on; what was found is what counts.
    redraw(changed, [isEmpty, events, { ...changes, since_s: 0 }], () => !isEmpty && changesOf(found, changes));
  }
  const renew = livePage(content, Object.values(parts), refresh, (event, again) => {
    heard(event, again);
    if (event.kind !== "campaign" && event.kind !== TRANSFER) soon(again);
  });
  setInterval(renew, RENEW_MS);
}

function transfers(kind, end, caption, { transfers: found, next_cursor: next }, none, older) {
  if (!found.length) return muted(none);
  const reported = ({ began_s: began, reported_s: last, ended_s: ended }) =>
    ended === null && small(since(last ?? began, last === null ? "began " : "reported "));
  return [cardTable(`transfers ${kind}`, caption, [
    words("Transfer", (each) => [transferLink(each), each.label && small(each.id)]),
    words("State", (each) => [stateOf(each), reported(each)]), words("Path", route), words("Arrived", progress),
    number("Rate", pace), number(end, ending), kind === "ended" && number("Saved by its relays", saving),
  ].filter(Boolean), found, { key: ({ id }) => id }), next && more("Show older ones", older)];
}

function inFlight(found, older) {
  const late = found.transfers.filter((each) => each.is_late).length;
  return [element("h2", {}, "In flight"), transfers("in-flight", "Ends", `Transfers under way, the newest first${late ? `; ${late} late` : ""}`,
    found, "None: nothing is under way, or its program does not report it.", older)];
}

// What transfers hold of VMs that they share, of quotas and of interconnects, and what is left for others.
const KINDS = { pool: "pool", vms: "VMs of their own", interconnect: "interconnect" };
const heldOf = (held, left, word) => (left === null ? `${rate(held)} Gbit/s`
  : barred(held / (held + left), `Part of what is ${word} that is held`, `${rate(held)} of ${rate(held + left)} Gbit/s`));
const POOLS = [
  words("Where", ({ held: { place, kind } }) => [place, small(KINDS[kind])]),
  words("Held, sent", ({ held }) => (held.kind === "vms" ? [plural(held.vms, "VM"),
    small(held.vms_left === null ? "no quota is stated" : `${count(held.vms_left)} more may run`)] : heldOf(held.egress_gbps, held.egress_gbps_left, "sent"))),
  words("Received", ({ held }) => (held.kind === "pool" ? heldOf(held.ingress_gbps, held.ingress_gbps_left, "received") : "")),
  words("By", ({ by }) => (by.length ? by.map(({ transfer }, place) => [place > 0 && ", ", transferLink({ id: transfer })])
    : small("none"))),
  words("First ends", "held.frees_at_s", (end) => (end === null ? UNKNOWN : left(end))),
];
const poolsOf = (found) => [element("h2", {}, "Capacity they share"), cardTable("pools", "What transfers under way hold, and what is left",
  POOLS, found, { key: ({ held }) => `${held.kind} ${held.place}` })];

// Against the direct path, as the plan stated it.
const gained = ({ saved_s: time_s, saved_usd: by_usd }) => (time_s === null ? [UNKNOWN]
  : [`${whole(time_s)}${time_s < 0 ? " lost" : ""}`, `${usd(Math.abs(by_usd))} ${by_usd < 0 ? "more" : "less"} spent`]);
const saving = (each) => gained(each).map((said, at) => (at ? small(said) : said));

function itsEnd(found, { state, month, ended }, again) {
  const which = state === "ended" ? state : state === "cancelled" ? "were cancelled" : state;
  return [element("h2", {}, "Ended"),
    element("div", { class: "row" }, choice("Show", ENDS, state, (other) => again({ state: other, ended: FEW })),
      choice("Month (UTC)", [...new Set(["", ...MONTHS, month])].map((each) => [each, each || "any"]), month,
        (other) => again({ month: other, ended: FEW }))),
    transfers("ended", "Ended", `Transfers that ${which}, the newest first`, found, "None.", () => again({ ended: ended + PAGE }))];
}

const nothingYet = () => element("section", {}, element("h2", {}, "No transfer has been reported"),
  element("p", {}, "Programs say when a transfer begins, how far it is and how it ended; this page then shows its rate and "
    + "its end against plan and deadline. A program, or a shell on this machine, says it with:"),
  commands("relayd transfers begin us-east sa --volume 500GB --id nightly-7 --deadline 2h\n"
    + "relayd transfers progress nightly-7 --moved 120GB\nrelayd transfers end nightly-7"));

// ---- one transfer: how far it is, its paths and reports, and what to do with the rest of it ----

const LAST = 20;

function onePage(id) {
  const parts = partsOf("head", "rest", "now", "paths", "reports");
  document.title = `Transfer ${id} - relayd`;
  async function refresh() {
    const [{ snapshot, details: { transfer, rest, paths, reports } }, { transfers: [outlook = {}] }] = await Promise.all([
      get(`v1/transfers/${encodeURIComponent(id)}`), get("v1/incidents", { transfer: id })]);
    restsOn(snapshot);
    redraw(parts.head, [transfer.health, transfer.state, transfer.reason], () => [
      element("h2", {}, `${transfer.label || transfer.id} `, stateOf(transfer)), element("p", {}, transfer.reason)]);
    redraw(parts.rest, [rest, outlook.advice], () => rest && restOf(id, rest, outlook));
    replace(parts.now, nowOf(transfer, outlook));
    redraw(parts.paths, paths, () => paths.length > 0 && [element("h2", {}, "Paths"), pathsOf(paths)]);
    redraw(parts.reports, reports, () => reports.length > 0 && reportsOf(reports));
  }
  setInterval(livePage(content, [element("p", {}, link("now", "Now")), ...Object.values(parts)], refresh,
    (event, again) => event.data.subject === id && heard(event, again)), RENEW_MS);
}

// Its id stands for its plan. Figures are as short as they are shown.
const SHORT = { gbps: (value) => Number(rate(value)), gb: (value) => Number(value.toFixed(3)), s: Math.round };
function restOf(id, { question, advised, body: { plan, ...said } }, { advice }) {
  const asked = Object.entries(said).map(([name, value]) => [name, SHORT[name.split("_").at(-1)]?.(value) ?? value]);
  return element("p", { class: advised ? "panel advised" : null }, advised && "It is late, or slower than its plan allows. ",
    advice, " ", link(askAddress([...(plan ? [["question", question], ["transfer", id]] : []), ...asked]), "Ask what to do with the rest"));
}

function nowOf(transfer, { kept }) {
  const { expected, planned_end_s: planned, deadline_at_s: deadline, ended_s: ended, state } = transfer;
  const lines = (said) => element("span", { class: "lines" }, said);
  const extra = transfer.cost_usd === null ? kept?.extra_usd ?? null : transfer.cost_usd - expected.cost_usd;
  return element("div", { class: "grid" },
    box("Progress", facts([["Arrived", progress(transfer)],
      [state === "running" ? "Rate now" : "Mean rate", lines(pace(transfer))],
      ["Mean since it began", gbps(transfer.mean_gbps)], [ended === null ? "Ends" : "Ended", lines(ending(transfer))]])),
    box("Plan", facts([["Rate", expected ? gbps(expected.throughput_gbps) : UNKNOWN],
      ["Takes", duration(expected?.duration_s)], ["Ends", at(planned)],
      ["Deadline", deadline === null ? "none" : at(deadline)], ["Costs", usd(expected?.cost_usd)],
      extra !== null && [ended === null ? "More cost as it goes on" : "More cost", worse(extra > 0, signed(extra, usd))],
      transfer.saved_s !== null && ["Saved by its relays", lines(saving(transfer))]])),
    box("Transfer", facts([["Path", lines(route(transfer))], ["Volume", volume(transfer.volume_gb)],
      ["Began", element("span", {}, since(transfer.began_s))],
      ["Reported", element("span", {}, since(transfer.reported_s), ` by ${transfer.who || "nobody named"}`)],
      ["Id", transfer.id]])));
}

const pathsOf = (found) => cardTable("paths", "Paths that were planned or reported", [
  words("Path", ({ regions }) => regions.join(" → ")), number("Planned", "planned_gbps", gbps),
  number("Arrived over it", "moved_gb", (moved) => (moved === null ? "not reported" : volume(moved))),
], found);

function reportsOf(found) {
  const caption = found.length > LAST ? `The last ${LAST} of ${found.length} reports` : "Reports, the newest first";
  return element("details", {}, element("summary", {}, "Reports"), cardTable("reports", caption, [
    words("At", "at_s", when), number("Arrived", "moved_gb", volume), number("Rate since the one before", "rate_gbps", gbps),
  ], found.slice(-LAST).reverse()));
}

// ---- what is wrong, since when, and what it costs: links in trouble, and transfers that lose by it ----

const FIRST = 8;
const QUIET = {
  good: "No link is down or degraded", stale: "No link was down or degraded at the last look, which is overdue",
  unknown: "Links are not watched, so no failure of one would be seen",
};

function incidentsOf({ incidents, transfers: found }, links, silent) {
  const lasting = incidents.filter((each) => !each.is_over).length;
  const named = new Map(found.map((each) => [each.id, each]));
  return [element("h2", {}, "What is wrong"), element("p", {}, summary(lasting, found, links, silent - found.filter(isSilent).length)),
    found.length > 0 && cardTable("harmed", "Transfers in flight that links in trouble touch, or that are late, slow or without what they held",
      HARMED, found, { key: ({ id }) => id }),
    // What lasts is always shown, of what is over only some.
    [["Links that are down or degraded", 0, lasting], ["Links that were, and recovered within the last week", lasting, incidents.length]]
      .map(([caption, from, to]) => to > from && cardTable("incidents", caption, incidentColumns(named),
        incidents.slice(from, to), { first: Math.max(FIRST, lasting), key: ({ src, dst, since_s: began }) => `${src}>${dst} ${began}` }))];
}

const isSilent = ({ state }) => state === "silent";
function summary(lasting, found, health, silent) {
  const others = silent > 0 ? `, and ${plural(silent, found.length ? "other" : "transfer")} ${silent === 1 ? "is" : "are"} silent` : "";
  const links = lasting ? `${count(lasting)} ${lasting === 1 ? "link is" : "links are"} down or degraded` : QUIET[health] ?? QUIET.good;
  if (!found.length) return `${links}; no reported transfer is touched, late, slow or without its hold${others}.`;
  const sum = (key) => found.reduce((total, { kept }) => total + Math.max(0, kept?.[key] ?? 0), 0);
  const open = found.filter(({ kept }) => (kept?.extra_s ?? null) === null).length;
  const [subject, its] = found.length === 1 ? ["1 transfer is", "its"] : [`${count(found.length)} transfers are`, "their"];
  return [`${links}; ${subject} touched, late, slow or without ${its} hold${others}: `,
    element("strong", {}, `${whole(sum("extra_s"))} and ${usd(sum("extra_usd"))} more`), " than planned",
    open ? `, without ${count(open)} of which that is not known.` : "."];
}

// Against its plan: hours and dollars that it takes more, or less.
const signed = (value, shown) => ((value ?? null) === null ? small("not known")
  : `${value < 0 ? "−" : "+"}${shown(Math.abs(value))}`);

const isNever = ({ kept }) => kept && kept.end_s === null;
const worse = (is, ...said) => element("span", { class: is ? "bad" : null }, said);
const HARMED = [
  words("Transfer", (each) => [transferLink(each), small(each.src, " → ", each.dst)]),
  words("State", (each) => [stateOf(each),
    isSilent(each) && small(since(each.last_s, "last known ")), each.cause && small(each.cause.text)]),
  words("Ends by its plan", "planned_end_s", (planned) => (planned === null ? small("has no plan") : at(planned))),
  words("Ends as it goes on", "kept", (kept, each) => (isNever(each) ? tag("never: a link that it takes is down", "bad")
    : kept ? [at(kept.end_s), isSilent(each) && small("as known last")] : small("not known"))),
  number("More time", "kept.extra_s", (more, each) =>
    (isNever(each) ? worse(true, small("without end")) : worse(more > 0, signed(more, whole)))),
  number("More cost", "kept.extra_usd", (more) => worse(more > 0, signed(more, usd))),
  words("If it is changed", ({ kept, changed, advice, ...each }) => [changed && ["ends ", at(changed.end_s)],
    (changed || isNever({ kept, ...each }) || kept?.extra_s > 0) && small(advice)]),
];

const incidentColumns = (named) => [
  words("Link", ({ src, dst, reason }) => [pairLink(src, dst), reason && small(reason)]),
  words("State", ({ health, is_over: over, condition }) => stateTag(health, over ? `was ${condition}` : condition)),
  words("Begun", "since_s", (from) => (from === null ? small("over a week ago") : [since(from), small(at(from))])),
  words("Resolved", ({ since_s: from, until_s: until, is_over: over }) => [!over ? "it lasts"
    : until === null ? small("not seen: its watcher stopped") : since(until), from !== null && until !== null && small("after ", whole(until - from))]),
  words("Transfers it touches", "transfers", (ids) => (ids.length
    ? ids.map((id, place) => [place > 0 && ", ", transferLink(named.get(id) ?? { id })]) : small("none"))),
];

// ---- health in tiles, each a link to what it rests on: good, bad, stale, or unknown (grey, with what to do) ----

const PROMISED = 0.9; // share of samples that bounds should hold
const TOO_FEW_INSIDE = 0.5;
const ENOUGH_SAMPLES = 10; // to judge bounds by
const plural = (number, one) => `${count(number)} ${one}${number === 1 ? "" : "s"}`;

// [name, href, kind, value, note] of each; null where there is nothing to say.
const TILES = [
  // Where most pairs were never measured, how old the others are says little.
  function knowledge({ knowledge: { measured, inferred, baseline, unsampled, outlived, median_sample_s: median } }) {
    const pairs = measured + inferred + baseline;
    const isFew = 2 * measured < pairs;
    const old = outlived ? `, ${count(outlived)} of them too long ago to rely on` : "";
    return ["Age of knowledge", unsampled ? "matrix?only=unsampled" : "matrix?metric=age", outlived ? "stale" : isFew ? "unknown" : "good",
      isFew ? `${count(unsampled)} never measured` : since(median),
      [`Of ${count(pairs)} pairs, ${count(unsampled)} were never measured; throughput was of ${count(measured)}${old}. The median of newest samples: `,
        since(median), "."]];
  },
  ({ watch, ...found }) => linksTile(found, watch, "#wrong"),
  ({ snapshot: { id }, snapshots: { created_at_s: made, warning } }) => ["Snapshot", "fleet#changed", warning ? "bad" : "good",
    since(made), warning ?? `${id} is what all answers rest on.`],
  function measuring({ measuring: { done, failed, usd: spent, budget_usd: budget } }) {
    const share = budget ? spent / budget : 0;
    return ["Measured today", "campaigns", share >= 1 ? "bad" : share >= 0.8 || failed ? "warn" : done ? "good" : "",
      plural(done, "probe"), [failed ? `${count(failed)} failed. ` : "", usd(spent), budget ? ` of ${usd(budget)}` : "",
        " spent; the day begins at 0:00 UTC."]];
  },
  function prediction({ prediction: found }) {
    const head = ["Prediction error", "fleet#changed"];
    if (!found?.samples) {
      return [...head, "", "–", found ? "No link was measured since yesterday." : "No snapshot from yesterday is kept to compare with."];
    }
    const { samples, median_error: error, inside_share: inside } = found;
    const kind = samples < ENOUGH_SAMPLES ? "" : inside >= PROMISED - 0.1 ? "good" : inside >= TOO_FEW_INSIDE ? "warn" : "bad";
    return [...head, kind, percent(100 * error), `Median of ${plural(samples, "sample")} against yesterday's estimates; `
      + `${Math.round(100 * inside)} % within their bounds (90 % should be).`];
  },
  ({ transfers: { in_flight: flying, bad, stale, good } }) => ["Transfers in flight", "#in-flight",
    bad ? "bad" : stale ? "stale" : good ? "good" : "unknown", `${count(flying)}${bad ? `, ${count(bad)} bad` : ""}`,
    [flying ? "As their programs report them" : "No program reports one now", stale ? `; ${count(stale)} silent for too long.` : "."]],
  // Of transfers that took the relays of their plans, against the direct path as the plans stated it.
  function savings({ saved }) {
    const { saved_s: time_s, saved_usd: by_usd, transfers, month, left_out: isPart } = saved;
    const head = [`Saved by relays${month && `, ${month}`}`, "#ended"];
    if (!transfers) return [...head, "", "–", "No transfer through a relay of its plan has finished."];
    const [time, spent] = gained(saved);
    return [...head, time_s >= 0 && by_usd >= 0 ? "good" : "", time, `and ${spent} than by the direct path: ${isPart ? "the last " : ""}`
      + `${plural(transfers, "finished transfer")} that went as planned, VMs and egress at the plans' prices.`];
  },
];

const tilesOf = (found) => [element("h2", { class: "hidden-text" }, "Health"), tiles(TILES.map((tile) => tile(found)))];

// ---- what has changed since yesterday: lasting shifts of links, plans that were verified, estimates ----

// Regions may be called anything: `src>dst` is the subject.
function verified({ subject, detail, at_s }) {
  const ends = subject.split(">");
  return element("li", {}, tag("plan verified", detail.held ? "good" : "warn"), " ", ends.length === 2 ? pairLink(...ends) : subject,
    detail.expected_gbps > 0 && `: carried ${gbps(detail.achieved_gbps)} of ${gbps(detail.expected_gbps)} expected`,
    small(since(at_s, " ")));
}

function changesOf({ events }, changes) {
  const found = events.filter(({ kind }) => kind === "verification").sort((a, b) => b.at_s - a.at_s);
  return [element("h2", {}, "What changed since yesterday"),
    found.length > 0 && element("ul", { class: "events" }, found.slice(0, FIRST).map(verified)),
    found.length > FIRST && muted(`${count(found.length - FIRST)} more plans that were verified.`),
    !found.length && !changes.shifts.length && element("p", {}, "No link changed its level, and no plan was verified."),
    shifts(changes.shifts.slice(0, FIRST)),
    changes.shifts.length > FIRST && muted(`${count(changes.shifts.length - FIRST)} more changes of level.`), described(changes),
    element("p", {}, link("fleet#changed", "All changes, also since a week or a month ago"))];
}

if (chosen.id) onePage(chosen.id);
else nowPage();
