// What is known between two regions in both directions, and why: a part of what Ask answers.

import { historyPanels } from "./history.js";
import {
  UNKNOWN, age, all, band, bounded, bounds, button, cardTable, colourOf, element, facts, fail, figure, folded,
  gbps, get, isPhone, link as linked, linkPath, mbps, ms, muted, number, pairLink, perGb, places, replace, secondary,
  small, sortable, stateTag, table, times, when, widePanel, withCode, words,
} from "../shared/kit.js";
import { QUANTITIES, metricOf } from "../shared/metrics.js";

const NEWS_EVERY_MS = 30e3;

// Fills a place with what is known of a pair, and says when that is no longer the newest.
export async function showPair(place, asked, signal) {
  replace(place, muted("Asking the service …"));
  try {
    const there = await get(linkPath(asked.src, asked.dst), {}, { signal });
    replace(place, await pairParts(there, signal));
    watch(place, there, signal);
  } catch (error) {
    replace(place);
    fail(error);
  }
}

async function pairParts(there, signal) {
  const { src, dst } = there.link;
  const own = linkPath(src, dst);
  // The reverse direction may be unknown: the rest is shown all the same.
  const { links } = await get("v1/links", { src: dst, dst: src, limit: 1 }, { signal });
  const back = links.length ? await get(linkPath(dst, src), {}, { signal }) : null;
  const [series, { events }, evidence, apart, { regions }] = await Promise.all([
    get(`${own}/summary`, { metric: "rtt_ms", bins: 1 }, { signal }),
    all(`${own}/events`, "events", {}, { most: 1000, signal }),
    get(`${own}/evidence`, {}, { signal }), get("v1/quarantine", { src, dst, limit: 1 }, { signal }), places(),
  ]);
  const cities = [src, dst].map((id) => regions.find((each) => each.id === id)?.city).filter(Boolean);
  const found = evidencePanel(evidence, there.link);
  return [
    element("h3", { class: "pair-name" }, `${src} → ${dst}`, cities.length === 2 && small(` ${cities.join(" to ")}`)),
    stateBanner([there, back]), doubts(there.link, apart), lead(there, back),
    !series.metrics.length && neverMeasured(there.link),
    element("div", { class: "answer-grid" }, factsPanel(there, back, found.open),
      lightPanel(there), series.metrics.length > 0 && historyPanels(own, series.metrics, usual(there, evidence), events), found.panel),
  ];
}

const neverMeasured = ({ src, dst, rtt_ms: { source } }) => element("p", { class: "never" }, "This direction was never measured: its figures are ",
  source === "baseline" ? "models" : "inferred from other links", ", as said below. To measure it: ",
  element("code", {}, `relayd probe --fleet fleet.toml --pairs '${src}>${dst}' --budget 5`));

// What is left open says when it is no longer the newest word; what is read is not taken away.
function watch(place, shown, signal) {
  const said = ({ snapshot, state }) => `${snapshot.id} ${state?.condition} ${state?.since}`;
  const news = setInterval(async () => {
    if (document.hidden) return;
    const now = await get(linkPath(shown.link.src, shown.link.dst), {}, { signal }).catch(() => null);
    if (signal.aborted || now === null || said(now) === said(shown)) return;
    clearInterval(news);
    place.prepend(element("p", { class: "news" }, "There are newer measurements. ",
      button("Show them", () => location.reload())));
  }, NEWS_EVERY_MS);
  signal.addEventListener("abort", () => clearInterval(news));
}

// A link that is down or degraded has bounds of now; its history is held against the usual ones.
function usual({ link, state }, { evidence }) {
  const before = evidence.filter((each) => each.estimate && !each.region);
  return state ? { ...link, ...Object.fromEntries(before.map((each) => [each.quantity, each.estimate])) } : link;
}

function stateBanner(pairs) {
  const told = pairs.filter((each) => each?.state).map(({ link, state: { condition, since, reason } }) => {
    const isDown = condition === "down";
    return element("p", {},
      element("strong", { class: colourOf("bad") }, `${link.src} → ${link.dst} is ${condition}`),
      ` since ${since.replace("T", " ")}: ${reason}. Plans go around it${isDown ? "" : " or take it as slow as it is"} `
      + "until it is back; what it usually does stands under Evidence.");
  });
  return told.length > 0 && note("pair-state", told);
}

const note = (kind, ...told) => element("div", { class: `problem ${kind}`, role: "note" }, told);

// Samples of this pair that do not count, and figures that some contradict.
function doubts({ src, dst }, { reasons, disputed }) {
  const count = reasons.reduce((sum, each) => sum + each.samples, 0);
  const [what, them] = count === 1 ? ["sample", "it"] : ["samples", "them"];
  const why = reasons.map(({ reason }) => reason).join(", ");
  const told = disputed.map(({ sentence }) => withCode(sentence));
  if (count) told.push(`${count} ${what} of this pair can't be a measurement (${why}): nothing rests on ${them}.`);
  return told.length > 0 && note("pair-doubts", told.map((text) => element("p", {}, text)),
    element("p", {}, linked(`quarantine?${new URLSearchParams({ src, dst })}`, "In quarantine and in dispute")));
}

// ---- figures of both directions ----

// After so many connections the pair carries no more; null where nothing is carried.
function saturating(link) {
  const [flow, most] = [link.per_flow_mbps.expected, link.aggregate_gbps.expected * 1000];
  return flow > 0 && most > 0 ? Math.max(1, Math.ceil(most / flow - 1e-9)) : null;
}

// What holds many flows where they are, in short and as advice.
const LIMITS = {
  vm: ["a VM's cap", "A VM's cap holds it there: more connections don't help, more VMs do."],
  window: ["the windows of its connections",
    "The windows of its connections hold it there: more connections carry more."],
  path: ["the path",
    "The path between holds it back: more connections brought nothing, and a relay may help."],
  unknown: ["unknown", "What holds it there is unknown: plans are careful to be right either way."],
};

// The answer first: one flow against many, and the two directions.
function lead({ link, sender, receiver }, back) {
  const connections = saturating(link);
  const [flow, many] = [link.per_flow_mbps.expected, link.aggregate_gbps.expected];
  const [[cap, end]] = [[sender.egress_gbps?.expected ?? Infinity, "sending VM's egress"],
    [receiver.ingress_gbps?.expected ?? Infinity, "receiving VM's ingress"]].sort(([one], [other]) => one - other);
  const said = connections === null ? ["Nothing gets through now."]
    : connections === 1 ? [`One flow carries all that this pair can: ${gbps(many)}.`]
      : [`One flow carries ${mbps(flow)}; ${connections} or more carry ${gbps(many)} together, ${times((many * 1000) / flow)} as much.`,
        Number.isFinite(cap) && `That is ${Math.round((100 * many) / cap)} % of the ${end} cap (${gbps(cap)}).`,
        LIMITS[link.limited_by][1]];
  if (link.address === "private") said.push("These VMs reach each other over private addresses.");
  const other = back && saturating(back.link) !== null && connections !== null && back.link.aggregate_gbps.expected;
  if (other && (many / other > 1.15 || other / many > 1.15)) {
    said.push(`The reverse direction carries ${many > other ? "less" : "more"}: ${gbps(other)}.`);
  }
  return element("p", { class: "lead" }, said.filter(Boolean).join(" "));
}

const sourceTag = (source) => element("span", { class: `tag source-${source}` }, source);
// A figure of one direction: expected, its bounds, and from what it is.
const three = (expected, within = "", source = "") => [expected ?? UNKNOWN, within, source];
const ratio = (one, other) => (one > 0 && other > 0 ? times(one / other) : UNKNOWN);
const DIRECTION = ["Low to high", "Source"];
const HEADS = ["Figure", "There", ...DIRECTION, "Back", ...DIRECTION, "There / back"]
  .map((title, at) => (at && title !== "Source" ? number : words)(title, (row) => row[at]));

// openEvidence(quantity): shows what a figure was made of. Rates of one scale are seen against each
// other: whether more connections help, more VMs, or neither.
function factsPanel(there, back, openEvidence) {
  const pairs = [there, back];
  const named = (text, unit) => [text, unit && small(` ${unit}`)];
  const rows = ["rtt_ms", "per_flow_mbps", "aggregate_gbps", "egress_gbps", "ingress_gbps", "window_mb"].map((quantity) => {
    const { end = "link", of, ...each } = QUANTITIES[quantity];
    const estimates = pairs.map((pair) => pair?.[end][of]);
    const highest = Math.max(0, ...estimates.map((estimate) => estimate?.high ?? 0).filter(Number.isFinite));
    return { ...each, quantity, estimates, highest };
  });
  const fastest = Math.max(...rows.map(({ highest, in_gbps: scale = 0 }) => highest * scale));
  const cells = ({ name, unit, quantity, estimates, highest, in_gbps: scale }) => {
    const of = (estimate) => {
      if (!estimate) return three();
      const [text, drawing] = bounded(estimate, `${name}, ${unit}: ${figure(estimate.expected)}`, figure,
        { most: scale ? fastest / scale : highest, width: 90 });
      return three(figure(estimate.expected), [text, Number.isFinite(estimate.expected) && drawing], sourceTag(estimate.source));
    };
    const opens = button(name, () => openEvidence(quantity), { class: "link" });
    return [named(opens, unit), ...estimates.flatMap(of), ratio(...estimates.map((each) => each?.expected))];
  };
  const fees = pairs.map((pair) => pair?.usd_per_gb ?? null);
  const saturates = pairs.map((pair) => pair && saturating(pair.link));
  const losses = pairs.map((pair) => pair?.link.loss_pct ?? null);
  const { src, dst, limited_by: limits } = there.link;
  const known = (values, of) => values.flatMap((value) => (value === null ? three() : of(value)));
  return (isPhone ? folded : widePanel)("figures", "Both directions", cardTable("directions",
    `There is ${src} → ${dst}, back is ${dst} → ${src}. Nine of ten true values lie between low and high. Caps and `
    + "windows are of one VM; bands of rates are on one scale. A name opens what its figure was made of.", HEADS, [
      ...rows.map(cells),
      [named("Loss", "%"), ...known(losses, (loss) => three(figure(loss), "", sourceTag("measured"))), ""],
      ["Limited by", ...known(pairs, ({ link: { limited_by: by } }) =>
        three(by === "unknown" ? stateTag(by) : LIMITS[by][0])), ""],
      ["Connections that saturate", ...known(saturates, (value) => three(value)), ratio(...saturates)],
      [named("Egress fee", "$/GB"), ...known(fees, (fee) => three(perGb(fee).slice(1, -3), "", "price list")), ratio(...fees)],
    ]),
  limits === "unknown" && muted(withCode("What limits many flows is unknown: no test with more and more connections "
    + `has shown it. \`relayd probe --pairs '${src}>${dst}' --ramp\` does.`)));
}

// ---- light ----

function lightPanel({ link, light }) {
  const made = (...said) => secondary("light", "Round trip against light", said);
  if (!light) return made(element("p", {}, "The place of a region is not known: give it coordinates in a catalogue file."));
  const rows = [["Light, vacuum", light.vacuum_ms], ["Light, fibre", light.fibre_ms], ["Round trip", link.rtt_ms.expected]];
  const most = Math.max(...rows.map(([, value]) => value));
  const found = { baseline: "The model says", inferred: "Inferred" }[link.rtt_ms.source] ?? "Measured";
  return made(table("light", "There and back", [words("", ([name]) => name),
      words("", ([name, value]) => band({ low: 0, expected: value, high: value }, most, `${name}: ${ms(value)}`, { width: 200 })),
      number("ms", ([, value]) => figure(value))], rows),
  element("p", {}, lightWords(light, link.rtt_ms.expected, found)));
}

function lightWords(light, rtt, found) {
  if (light.stretch === null || light.distance_km < 1) return `Both regions are at one place; ${found.toLowerCase()}: ${ms(rtt)}.`;
  const apart = `The regions are ${figure(light.distance_km)} km apart along the globe: light needs ${ms(light.vacuum_ms)} there and back, `
    + `${ms(light.fibre_ms)} in a straight fibre. ${found}`;
  if (!light.possible) return `${apart} ${ms(rtt)}, which is impossible: a place in the catalogue or a measurement is wrong.`;
  return `${apart}: ${ms(rtt)}, ${light.stretch < 1 ? "less than the fibre would take: the regions are nearer to each other than the places given for them."
    : `${light.stretch.toFixed(2)} times the fibre; the ${ms(rtt - light.fibre_ms)} beyond it are cables that take longer routes, equipment and queues.`}`;
}

// ---- evidence ----

const KINDS = { samples: "from samples", inference: "derived", model: "a model alone", stated: "stated", nothing: "not known" };
const SERIES_NAMED = 6;

// What each figure was made of: the panel, and what opens the part of a figure.
function evidencePanel({ evidence }, link) {
  const parts = new Map(evidence.map((each) => [each.quantity, evidencePart(each, link, open)]));
  function open(quantity) {
    const wanted = parts.get(quantity);
    if (!wanted) return;
    for (let outer = wanted; outer; outer = outer.parentElement.closest("details")) outer.open = true;
    wanted.querySelector("summary").focus();
    wanted.scrollIntoView({ block: "nearest" });
  }
  const panel = (isPhone ? folded : widePanel)("evidence", "Evidence",
    muted("What each figure was made of, down to the samples that counted. Figures are as the snapshot has them: "
      + "before they are widened for age, and without what is wrong with a link just now."), [...parts.values()]);
  return { panel, open };
}

// What the rates of a pair were made of, down to samples, wherever it is wanted.
export async function evidenceOf(src, dst, signal) {
  const own = linkPath(src, dst);
  const [{ link }, evidence] = await Promise.all([get(own, {}, { signal }), get(`${own}/evidence`, {}, { signal })]);
  return element("div", {}, ...evidencePanel(evidence, link).panel.querySelectorAll("details.evidence"));
}

function evidencePart(each, link, open) {
  const { estimate, series } = each;
  const { name, shown } = metricOf(each.quantity);
  const links = series.length + each.further;
  const counted = series.reduce((sum, one) => sum + one.samples.length, 0);
  const from = links > 1 ? `, from ${links} links` : counted ? `, ${counted} ${counted === 1 ? "sample" : "samples"}` : "";
  const value = estimate ? bounds(estimate, shown) : shown(each.quantity === "loss_pct" ? link.loss_pct : null);
  const newest = (estimate?.measured_at_s ?? null) !== null && [", newest ", age(estimate)];
  const inside = element("div", { class: "inside" });
  const made = element("details", { class: "evidence", dataset: { quantity: each.quantity } },
    element("summary", {}, element("span", { class: "what" }, name), " ", element("span", { class: "value" }, value),
      " ", element("span", { class: "how" }, KINDS[each.kind] ?? each.kind, from, newest)), inside);
  // Tables of samples are made when they are wanted.
  made.addEventListener("toggle", () => made.open && !inside.firstChild && replace(inside, explained(each, open)));
  return made;
}

function explained({ rests_on: rests, estimate, region, rule, series, further }, open) {
  const links = rests.map((quantity, at) =>
    [at ? ", " : "", button(metricOf(quantity).name, () => open(quantity), { class: "link" })]);
  return [facts([
    ["Rule", rule], region && ["Of the VM in", region],
    estimate && ["In short", [sourceTag(estimate.source), estimate.basis ? ` ${estimate.basis}` : ""]],
    links.length > 0 && ["Rests on", links],
  ].filter(Boolean)), series.length > 0 && seriesOf(series, further)];
}

function seriesOf(series, further) {
  const [read, unread] = [true, false].map((is) => series.filter((one) => one.was_read === is));
  const more = unread.length + further;
  const samples = read.flatMap((one) => one.samples);
  const named = unread.slice(0, SERIES_NAMED).map((one) => `${one.src} → ${one.dst}`).join(", ");
  const caption = series.length === 1 ? "One series of samples" : `${series.length + further} series of samples`;
  return [
    table("series", caption, [
      words("Link", ({ src, dst }) => (src === dst ? src : pairLink(src, dst))),
      words("Metric", "metric", (metric) => (metric.endsWith("cap_mbps") ? "cap" : metricOf(metric).name)),
      number("Counted", "samples.length"),
      words("Left out", ({ left_out: out }) => out.map((left) => `${figure(left.samples)} ${left.reason}`).join("; ") || "none"),
    ], read),
    more > 0 && muted(`And ${more} further links, whose samples are not listed here: ${named}`
      + `${more > SERIES_NAMED ? ", …" : "."}`),
    samples.length > 0 && samplesOf(samples, read.length > 1),
  ];
}

function samplesOf(samples, severalLinks) {
  const units = new Set(samples.map((row) => metricOf(row.metric).unit || "Mbit/s"));
  return element("div", { class: "figures" }, sortable("The samples that counted, as the tools gave them; times in UTC", [
    words("Measured at", "measured_at_s", when),
    number("Value", (row) => row.value * metricOf(row.metric).scale, figure, units.size === 1 ? [...units][0] : ""),
    ...(severalLinks ? [words("Link", (row) => `${row.src} → ${row.dst}`)] : []),
    words("Tool", "tool"), number("Connections", "connections"),
    number("Seconds", "duration_s", (time_s) => (time_s === null ? "" : figure(time_s))),
    words("Slow start", (row) => (row.warmed_up ? "left out" : row.duration_s === null ? "" : "in it")),
    number("Sample", "id"), number("Batch", "batch_id"),
  ], samples, { order: 0, descending: true }));
}
