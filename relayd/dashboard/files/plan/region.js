// Where traffic from a region can go, until a destination is chosen: its links on a map and as a table.

import { placeOf, rateColumns } from "../answers/parts.js";
import {
  all, choice, element, figure, fragment, keep, link as linked, mbps, ms, number, pairAddress, panel, range, rate,
  replace, small, sortable, words,
} from "../shared/kit.js";
import { METRICS } from "../shared/metrics.js";
import { WorldMap } from "../world/map.js";

const FEW_MISSING = 12;
const FEW = 20; // links, so that each can be told from the others
const SHOWN = [["best", `${FEW} best`], ["worst", `${FEW} worst`], ["all", "all"]];
const USUAL = { metric: "aggregate", show: "best" };
const COLOURS = ["aggregate", "per-flow", "rtt", "loss"];

// What is chosen is in the address. named: as a person wrote it; to(region): the address of the question with that destination.
export async function regionView(named, known, to) {
  const found = await all("v1/links", "links", { src: named });
  const src = found.links[0]?.src ?? named;
  const regions = known.regions.filter((region) => region.in_graph);
  const state = { ...USUAL, ...Object.fromEntries(fragment()) };
  if (!COLOURS.includes(state.metric)) state.metric = USUAL.metric;
  if (!SHOWN.some(([name]) => name === state.show)) state.show = USUAL.show;
  const said = element("p", { class: "muted" });
  const table = element("div");
  const chosen = (name, value) => {
    state[name] = value;
    keep({ [name]: value === USUAL[name] ? "" : value });
    draw();
  };
  const map = new WorldMap({ choose: (id) => id !== src && location.assign(to(id)), onMetric: (name) => chosen("metric", name) });
  function draw() {
    const { metric, show } = state;
    const whole = found.links.map((link) => lineOf(link, metric));
    const lines = fewest(whole, metric, show);
    const of = new Map(whole.map((each) => [each.dst, each.said]));
    const many = lines.length < whole.length ? `the ${show} ${FEW} of ${whole.length}` : lines.length;
    said.textContent = `Drawn: ${many}. Choose a destination on the map or in the list.`;
    map.show({
      regions, lines, all: whole, kindTitle: "What it rests on",
      marked: [src], named: lines.map((line) => line.dst), said: (region) => of.get(region.id) ?? placeOf(region),
      label: `Map of ${lines.length} links from ${src}`,
    }, metric);
    replace(table, linkTable(found.links, regions, to, metric));
  }
  const missing = regions.filter((region) => region.latitude_deg === null);
  draw();
  return [
    element("h2", {}, `From ${src} to ${found.links.length} regions`), said,
    element("div", { class: "row" }, choice("Links", SHOWN, state.show, (show) => chosen("show", show))),
    element("div", { class: "panel", id: "map" }, map.part), panel("figures", "Figures", table),
    missing.length > 0 && element("details", { open: missing.length <= FEW_MISSING },
      element("summary", {}, `${missing.length} not on the map, because ${missing.length === 1 ? "its" : "their"} place is not known`),
      element("p", {}, missing.map((region) => region.id).join(", "), ".")),
  ];
}

function lineOf(link, metric) {
  const { expected, low, high, source } = metric === "per-flow" ? link.per_flow_mbps : link.aggregate_gbps;
  const values = {
    "per-flow": link.per_flow_mbps.expected, aggregate: link.aggregate_gbps.expected,
    rtt: link.rtt_ms.expected, loss: link.loss_pct,
  };
  const shown = metric === "per-flow" ? mbps(expected) : `${rate(expected)} Gbit/s`;
  return {
    src: link.src, dst: link.dst, gbps: values.aggregate, kind: source, values,
    said: `${link.src} to ${link.dst}: ${shown} (${range(low, high)}), round trip ${ms(values.rtt)}, ${source}`,
  };
}

// The best or the worst by a metric; those that it is not known of come last.
function fewest(lines, metric, shown) {
  if (shown === "all" || lines.length <= FEW) return lines;
  const sign = (METRICS[metric].isLess ? 1 : -1) * (shown === "worst" ? -1 : 1);
  const value = (line) => (line.values[metric] === null ? Infinity : sign * line.values[metric]);
  return [...lines].sort((a, b) => value(a) - value(b) || a.dst.localeCompare(b.dst)).slice(0, FEW);
}

function linkTable(links, regions, to, metric) {
  const cities = new Map(regions.map((region) => [region.id, region.city]));
  return sortable(`All links from ${links[0]?.src ?? "here"}; a name leads to the plan`, [
    words("To", "dst", (dst) => [linked(to(dst), dst), " ", small(cities.get(dst) ?? "")]),
    ...rateColumns(links),
    words("Source", "aggregate_gbps.source"),
    number("Per flow", "per_flow_mbps.expected", figure, "Mbit/s"),
    number("Round trip", "rtt_ms.expected", (rtt_ms) => rtt_ms.toFixed(1), "ms"),
    words("What is known", "dst", (dst, { src }) => linked(pairAddress(src, dst), "The pair")),
  ], links, {
    order: { "per-flow": 4, rtt: 5 }[metric] ?? 1, descending: metric !== "rtt", first: FEW, key: (link) => link.dst,
  });
}
