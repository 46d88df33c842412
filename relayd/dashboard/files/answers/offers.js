// The offers of a plan: rows in the order of what an hour is worth, each opened in place, and next to them a chart and
// a map that follow the row under the pointer or the focus.

import { STEPS, linksTable, pairsOf, pathLinks, planOnMap, vmCount } from "./parts.js";
import { written } from "../plan/request.js";
import { chart } from "../shared/chart.js";
import {
  UNKNOWN, button, copyable, duration, element, facts, fail, fragment, get, isPhone, keep, link as linked, linkPath, ms,
  muted, number, perGb, percent, rate, replace, secondary, small, sortable, tag, usd, words,
} from "../shared/kit.js";
import { WorldMap } from "../world/map.js";

const WORTHS = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, Infinity];
const said = (worth) => (worth === 0 ? "nothing: least cost" : worth === Infinity ? "any sum: least time" : usd(worth).replace(".00", ""));
const objectiveOf = (worth) => (worth === 0 ? { objective: "cost" } : worth === Infinity ? { objective: "time" }
  : { objective: "value", time_value_usd_per_h: String(worth) });
// Cost plus time; a service takes a time that is not known, and comes last unless cost alone counts.
const valueAt = (worth) => ({ duration_s: time, cost_usd: { total } }) =>
  (worth === 0 ? total : time === null ? Infinity : worth === Infinity ? time : total + (worth * time) / 3600);

// context: { request, addressOf, signal, command, regions }; below: what stands below the rows.
export function offersPart(plan, context, below) {
  const { offers, request: asked } = plan;
  const usual = { value: asked.time_value_usd_per_h ?? Infinity, time: Infinity, cost: 0 }[asked.objective] ?? Infinity;
  const nearest = (worth) => WORTHS.reduce((best, each) => (Math.abs(Math.log1p(each) - Math.log1p(worth))
    < Math.abs(Math.log1p(best) - Math.log1p(worth)) ? each : best), worth === Infinity ? worth : 0);
  const kept = fragment();
  const state = { worth: kept.has("worth") ? Number(kept.get("worth")) : usual, row: kept.get("row") };
  const [list, note, sorted] = [element("ol", { class: "offers" }), element("span"), element("output")];
  const slider = element("input", { type: "range", min: 0, max: WORTHS.length - 1, "aria-label": "Worth of an hour",
    on: { input: () => sort(WORTHS[slider.value]) } });
  const map = new WorldMap();
  map.show(planOnMap(plan, context.regions));
  const points = [];
  const follow = (at) => {
    points.followed = at; // by what is not drawn yet, too
    [...list.children].forEach((row) => row.classList.toggle("lit", row.dataset.offer === String(at)));
    points.forEach((point, of) => point.classList.toggle("lit", of === at));
    map.light(pairsOf(offers[at]));
  };
  const rows = offers.map((offer, at) => rowOf(offer, at, { plan, ...context }, {
    isOpen: state.row === String(at), follow,
    opened: (is) => {
      if (is) for (const other of list.querySelectorAll("details[open]")) other.open = other.closest("li").dataset.offer === String(at);
      if (is || state.row === String(at)) keep({ row: state.row = is ? String(at) : "" });
    },
  }));
  let isPart = isPhone && offers.length > FEW;
  const rest = isPart && button(`Show all ${offers.length}`, () => {
    isPart = false;
    rest.remove();
    sort(state.worth);
  });
  function sort(worth) {
    state.worth = worth;
    keep({ worth: worth === usual ? "" : String(worth) });
    slider.value = WORTHS.indexOf(nearest(worth));
    slider.setAttribute("aria-valuetext", sorted.value = said(worth));
    const value = valueAt(worth);
    const ordered = rows.toSorted((a, b) => value(offers[a.dataset.offer]) - value(offers[b.dataset.offer]));
    ordered.forEach((row, at) => { row.hidden = isPart && at >= FEW && !row.matches(".recommended, :has([open])"); });
    replace(list, ordered);
    // The recommended one comes first in offers, and by another rule than this order's perhaps not in it.
    rows[0].classList.toggle("passed", ordered[0] !== rows[0]);
    rows[0].querySelector("small").textContent = `${worth === usual ? "" : "As asked: "}${offers[0].why}`;
    replace(note, worth !== usual && linked(context.addressOf({ ...context.request, ...objectiveOf(worth) }), "Ask with this"));
  }
  sort(Number.isNaN(state.worth) ? usual : state.worth);
  list.addEventListener("pointerleave", () => follow(Math.max(0, Number(state.row ?? 0))));
  const drawing = costChart(plan, points, { follow, open: (at) => {
    const row = list.querySelector(`[data-offer="${at}"] > details`);
    row.open = !row.open;
    row.scrollIntoView({ block: "nearest" });
  } });
  follow(Number(state.row ?? 0) in offers ? Number(state.row ?? 0) : 0);
  return element("div", { class: "offered wide" },
    element("div", { class: "stack" }, element("section", { class: "panel", "aria-labelledby": "offers" }, element("h2", { id: "offers" }, `${offers.length} ways`),
      element("span", { class: "slid" }, "Best first if an hour is worth", slider, sorted), " ", note,
      element("div", { class: "offer heads", "aria-hidden": "true" }, ["Way", ...CELLS.map(([title]) => title)].map((title) => element("span", {}, title))),
      list, rest), below),
    element("div", { class: "following stack" }, secondary("frontier", "Cost and time", drawing), secondary("world-map", "On the map", map.part)));
}

const FEW = 5; // rows at first, on a phone
const CELLS = [["Time", ({ duration_s: time }) => duration(time)], ["Price", ({ cost_usd: cost }) => usd(cost.total)],
  ["Sooner", ({ faster }) => (faster === null ? UNKNOWN : faster < 0.01 ? "under 1 %" : faster > 0.99 ? "over 99 %" : percent(Math.round(100 * faster))),
    "than direct, chance", "sooner"],
  ["VMs", ({ vms }) => vmCount(vms) || "none", "", "VMs"], ["Evidence", ({ evidence }) => evidence ?? UNKNOWN]];

function rowOf(offer, at, context, { isOpen, follow, opened }) {
  const inside = element("div", { class: "inside" });
  const fill = () => inside.firstChild || replace(inside, opensTo(offer, context));
  const own = [...new Set(offer.addresses)].join(" and ");
  const details = element("details", { open: isOpen, on: { toggle: () => {
    if (details.open) fill();
    opened(details.open);
  } } }, element("summary", { class: "offer", on: { focus: () => follow(at) } },
    element("span", { class: "what" }, offer.name, offer.recommended && [" ", tag("recommended", "good")],
      own.includes("private") && [" ", tag(`${own} addresses`)], offer.why && small(offer.why)),
    CELLS.map(([title, shown, more = "", unit]) => element("span", { class: "figure", dataset: unit ? { unit } : {} },
      element("span", { class: "hidden-text" }, `${title}${more && ` ${more}`} `), shown(offer)))), inside);
  if (isOpen) fill();
  return element("li", { dataset: { offer: at }, class: offer.recommended && "recommended", on: { pointerenter: () => follow(at) } }, details);
}

// What a row opens to: what limits it, what that rests on down to samples, and how to run it.
function opensTo(offer, { plan, request, addressOf, command, signal }) {
  const own = { ...request, ...written(offer.change) };
  const evidence = element("div", {}, muted("Asking the service …"));
  const isService = offer.verdict === "service";
  const links = isService ? [] : pairsOf(offer);
  Promise.all(links.map((link) => get(linkPath(...link), {}, { signal }).then((found) => found.link))).then((found) =>
    replace(evidence, found.length > 0 && linksTable("Links, and what their figures rest on", found), links.map((link) =>
      element("details", { class: "samples", on: { toggle: (event) => samples(event.target, link, signal) } },
        element("summary", {}, `Samples of ${link.join(" → ")}`))))).catch(fail);
  return [
    facts([
      offer.limit && ["What limits it", offer.limit],
      offer.throughput_gbps !== null && ["Throughput", `${rate(offer.throughput_gbps)} Gbit/s`],
      ["Price", `${usd(offer.cost_usd.egress)} egress, ${usd(offer.cost_usd.vm)} VMs`],
      offer.recommended && ["Paths", element("ul", { class: "paths" }, plan.paths.map((path) => element("li", {}, pathLinks(path.regions),
        `: ${percent(Math.round(100 * path.share))}, ${rate(path.throughput_gbps)} Gbit/s over ${path.connections} connections, ${ms(path.rtt_ms)}, ${perGb(path.egress_usd_per_gb)}; ${path.bottleneck}`)))],
      !isService && ["VMs", Object.entries(offer.vms).map((pair) => pair.reverse().join(" at ")).join(", ")],
    ]), evidence,
    element("div", { class: "command" }, copyable(command(own) + (offer.emit && ` --emit ${offer.emit}`), "Copy", "Command")),
    !offer.recommended && !isService && element("p", {}, linked(addressOf(own), offer.verdict === "relay" ? "Plan with this relay" : "Plan this")),
  ];
}

async function samples(details, [src, dst], signal) {
  if (!details.open || details.children.length > 1) return;
  const { evidenceOf } = await import("../plan/pair.js");
  details.append(await evidenceOf(src, dst, signal).catch((error) => element("p", { class: "problem" }, error.message)));
}

// ---- cost against time, on a logarithmic scale: one slow offer leaves room to all others ----

const TICKS_S = STEPS.slice(0, -1).reduceRight((all, [, unit]) => [...all, ...[1, 2, 5, 10, 20, 30].map((times) => times * unit)], [1, 2, 5, 10, 20, 30])
  .sort((a, b) => a - b);
const TICK_PX = 85;

function costChart(plan, points, { follow, open }) {
  const known = plan.offers.map((offer, at) => ({ ...offer, at })).filter((offer) => offer.duration_s !== null);
  const at = (one) => ({ x: Math.log10(one.duration_s), y: one.cost_usd.total });
  const curve = [...plan.frontier].sort((a, b) => a.duration_s - b.duration_s);
  const all = [...known, ...curve].map(at);
  const around = (axis, share) => {
    const [low, high] = [Math.min(...all.map((each) => each[axis])), Math.max(...all.map((each) => each[axis]))];
    const room = share * (high - low || Math.abs(high) || 1);
    return [low - room, high + room];
  };
  const [across, up] = [around("x", 0.06), around("y", 0.1)];
  const within = TICKS_S.map(Math.log10).filter((value) => value >= across[0] && value <= across[1]);
  // Those that have room for their names.
  const spaced = ({ width }) => within.reduce((all, each) => ((each - all.at(-1)) / (across[1] - across[0]) * width < TICK_PX ? all : [...all, each]), []);
  const mark = (offer) => points[offer.at] = element("i", {
    class: `point ${offer.recommended ? "recommended " : ""}${points.followed === offer.at ? "lit " : ""}${offer.verdict}`, title: `${offer.name}: ${duration(offer.duration_s)}, ${usd(offer.cost_usd.total)}`,
    on: { mouseover: () => follow(offer.at), click: () => open(offer.at) },
  });
  const table = () => sortable("Every way, and the cheapest plan for each time", [
    words("Way", (one) => one.name ?? one.verdict), number("Time", "duration_s", duration), number("Price", "cost_usd.total", usd),
    number("VMs", ({ vms }) => vmCount(vms)),
  ], [...known, ...curve], { order: 1 });
  const title = `Cost against time of ${known.length} ways; the recommended one takes ${duration(plan.duration_s)} and costs ${usd(plan.cost_usd.total)}.`;
  return element("div", { class: "frontier-chart" }, chart(() => ({
    isStill: true, height: 190,
    x: { title: "Time, logarithmic", range: () => across, splits: spaced, ticks: (value) => duration(10 ** value) },
    y: { title: "Cost", range: () => [Math.max(0, up[0]), up[1]], ticks: (value) => usd(value).replace(".00", "") },
    values: curve.length ? [curve.map((one) => at(one).x), curve.map((one) => at(one).y)] : [[across[0]], [null]],
    series: [{ kind: "line", color: "line", width: 1.5 }],
    marks: known.map((offer) => ({ ...at(offer), made: mark(offer) })),
  }), { title, figures: table }));
}
