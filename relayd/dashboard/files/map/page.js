// Where traffic goes: the links of a source to others, or the paths of a plan.

import { all, get, post } from "../shared/api.js";
import { element, number, replace, sortable, words } from "../shared/dom.js";
import { figure, mbps, ms, range, rate, volume } from "../shared/format.js";
import { METRICS } from "../shared/metrics.js";
import { pairAddress } from "../shared/pairs.js";
import { panel, small } from "../shared/parts.js";
import { baselineNote, places } from "../shared/places.js";
import { content, restsOn, show } from "../shared/shell.js";
import { pathTable, placeOf, planOnMap, rateColumns, verdictText } from "../transfer/figures.js";
import { loadFields } from "../plan/fields.js";
import { fromAddress, question, toAddress } from "../plan/request.js";
import { WorldMap } from "../world/map.js";

const FEW_MISSING = 12;
const FEW = 20; // links, so that each can be told from the others
const SHOWN = { best: `${FEW} best`, worst: `${FEW} worst`, all: "all" };
const LINK_METRICS = ["aggregate", "per-flow", "rtt", "loss"];
const DEFAULTS = { metric: "aggregate", show: "best" };
const ALLOWED = { metric: [...LINK_METRICS, "fee"], show: Object.keys(SHOWN) };

const option = ([value, text]) => element("option", { value }, text);

function regionOptions(regions) {
  const providers = [...new Set(regions.map((region) => region.provider))].sort();
  return providers.map((provider) => element("optgroup", { label: provider }, regions
    .filter((region) => region.provider === provider).sort((a, b) => a.id.localeCompare(b.id))
    .map((region) => option([region.id, region.city ? `${region.id} (${region.city})` : region.id]))));
}

function controls(regions, go) {
  const selects = Object.fromEntries([
    ["src", "From", regionOptions(regions)], ["dst", "To", [option(["", "all regions"]), regionOptions(regions)]],
    ["show", "Links", Object.entries(SHOWN).map(option)],
  ].map(([name, label, options]) => [name, { label, select: element("select", { name, id: `show-${name}` }, options) }]));
  const form = element("form", { class: "row map-controls", "aria-label": "What the map shows", on: {
    submit: (event) => event.preventDefault(), change: (event) => go({ [event.target.name]: event.target.value }),
  } }, Object.values(selects).map(({ label, select }) =>
    element("div", { class: "choice" }, element("label", { for: select.id }, label), select)));
  function fill(state) {
    for (const [name, { select }] of Object.entries(selects)) select.value = state[name] ?? "";
    selects.show.select.disabled = Boolean(state.dst);
  }
  return { form, fill };
}

// A name is a region, or an alias whose first member is preferred; else the API says what is wrong.
const resolved = ({ regions, aliases }, name) =>
  regions.some((region) => region.id === name) ? name : (aliases[name]?.[0] ?? name);

async function found(state, request) {
  if (!state.dst) return all("v1/links", "links", { src: state.src });
  const { isBody, content: asked } = question({ ...request, src: state.src, dst: state.dst, frontier: "false" });
  const plan = await (isBody ? post("v1/plans", asked) : get("v1/plans", asked));
  return { plan, snapshot: plan.snapshot };
}

// The links of a source as lines of the map.
function linkLines(links, metric) {
  const isFlow = metric === "per-flow";
  return links.map((link) => {
    const figures = isFlow ? link.per_flow_mbps : link.aggregate_gbps;
    const shown = isFlow ? mbps(figures.expected) : `${rate(figures.expected)} Gbit/s`;
    return {
      src: link.src, dst: link.dst, thickness: figures.expected, kind: figures.source,
      values: { "per-flow": link.per_flow_mbps.expected, aggregate: link.aggregate_gbps.expected, rtt: link.rtt_ms.expected, loss: link.loss_pct },
      said: `${link.src} to ${link.dst}: ${shown} (${range(figures.low, figures.high)}), round trip ${ms(link.rtt_ms.expected)}, ${figures.source}`,
    };
  });
}

// The best or the worst by a metric; those that it is not known of come last.
function fewest(lines, metric, shown) {
  if (shown === "all" || lines.length <= FEW) return lines;
  const sign = (METRICS[metric].isLess ? 1 : -1) * (shown === "worst" ? -1 : 1);
  const value = (line) => (line.values[metric] === null ? Infinity : sign * line.values[metric]);
  return [...lines].sort((a, b) => value(a) - value(b) || a.dst.localeCompare(b.dst)).slice(0, FEW);
}

function linkTable(links, known, planAddress, metric) {
  const cities = new Map(known.regions.map((region) => [region.id, region.city]));
  const lead = (text, href, { src, dst }) => element("a", { href, "aria-label": `${text} ${src} to ${dst}` }, text.toLowerCase());
  return sortable(`All links from ${links[0]?.src ?? "here"}`, [
    words("To", "dst", (dst) => [dst, " ", small(cities.get(dst) ?? "")]),
    ...rateColumns(links),
    words("Source", "aggregate_gbps.source"),
    number("Per flow", "per_flow_mbps.expected", figure, "Mbit/s"),
    number("Round trip", "rtt_ms.expected", (rtt_ms) => rtt_ms.toFixed(1), "ms"),
    words("Leads to", "dst", (_, link) => element("span", { class: "row-links" },
      lead("Pair", pairAddress(link.src, link.dst), link), " ", lead("Plan", planAddress(link.src, link.dst), link))),
  ], links, { order: { "per-flow": 4, rtt: 5 }[metric] ?? 1, descending: metric !== "rtt", key: (link) => link.dst });
}

function described({ plan, links }, state, known, request) {
  const planAddress = (src, dst) => `./?${toAddress({ ...request, src, dst })}`;
  if (plan) {
    const { src, dst, volume_gb: gb } = plan.request;
    return { ...planOnMap(plan, known.regions), table: pathTable(plan), heading: [
      element("h2", {}, `${src} → ${dst}: ${verdictText(plan)}`),
      element("p", {}, `${rate(plan.throughput_gbps)} Gbit/s for ${volume(gb)}. ${plan.reason} `,
        element("a", { href: planAddress(src, dst) }, "The plan in full")),
    ] };
  }
  const metric = LINK_METRICS.includes(state.metric) ? state.metric : "aggregate";
  const whole = linkLines(links, metric);
  const lines = fewest(whole, metric, state.show);
  const said = new Map(whole.map((each) => [each.dst, each.said]));
  const many = lines.length < whole.length ? `the ${SHOWN[state.show]} of ${whole.length}` : lines.length;
  return {
    regions: known.regions, lines, all: whole, kindTitle: "Rests on", unit: metric === "per-flow" ? "Mbit/s" : "Gbit/s",
    marked: [state.src], named: lines.map((line) => line.dst), said: (region) => said.get(region.id) ?? placeOf(region),
    label: `Map of ${lines.length} links from ${state.src}`, table: linkTable(links, known, planAddress, metric),
    heading: [
      element("h2", {}, `From ${state.src} to ${whole.length} regions`),
      element("p", { class: "muted" }, `Drawn: ${many}. Choose a region on the map or in the list to send from it; a destination shows the plan. Markers that would overlap are moved apart.`),
    ],
  };
}

async function start(known) {
  const map = new WorldMap({ choose: (id) => go({ src: id, dst: "" }), onMetric: (metric) => go({ metric }) });
  const [below, heading, note] = [element("div"), element("div", { class: "map-heading" }), element("div")];
  const { form, fill } = controls(known.regions, go);
  const first = known.regions.find((region) => region.latitude_deg !== null) ?? known.regions[0];
  const missing = known.regions.filter((region) => region.latitude_deg === null || region.longitude_deg === null);
  replace(content, form, note, heading, element("div", { class: "panel map-panel", id: "map" }, map.part), below);
  let latest = 0;

  function read() {
    const query = new URLSearchParams(location.search);
    const chosen = Object.entries(DEFAULTS).map(([name, otherwise]) => [name, ALLOWED[name].includes(query.get(name)) ? query.get(name) : otherwise]);
    return {
      src: resolved(known, query.get("src") || first.id),
      dst: query.get("dst") ? resolved(known, query.get("dst")) : "",
      ...Object.fromEntries(chosen),
    };
  }

  function go(changes) {
    const state = { ...read(), ...changes };
    const query = new URLSearchParams(toAddress({ ...fromAddress(location.search), src: state.src, dst: state.dst }));
    for (const [name, otherwise] of Object.entries(DEFAULTS)) if (state[name] !== otherwise) query.set(name, state[name]);
    history.pushState(null, "", `map?${query.toString().replaceAll("%3A", ":")}`);
    return show(draw);
  }

  async function draw() {
    const state = read();
    const request = fromAddress(location.search);
    fill(state);
    latest += 1;
    const mine = latest;
    const answer = await found(state, request).catch((error) => {
      replace(heading);
      replace(below);
      map.part.hidden = true;
      throw error;
    });
    if (mine !== latest) return;
    restsOn(answer.snapshot);
    const shown = described(answer, state, known, request);
    replace(note, baselineNote(answer.snapshot));
    replace(heading, shown.heading);
    replace(below, panel("figures", "Figures", shown.table, missing.length > 0 && element("details", { open: missing.length <= FEW_MISSING },
      element("summary", {}, `${missing.length} not on the map, because ${missing.length === 1 ? "its" : "their"} place is not known`),
      element("p", {}, missing.map((region) => region.id).join(", "), "."))));
    map.part.hidden = false;
    await map.show(shown, state.metric);
  }

  addEventListener("popstate", () => show(draw));
  await draw();
}

show(async () => {
  const [{ regions, aliases }] = await Promise.all([places(), loadFields()]);
  return start({ regions: regions.filter((region) => region.in_graph), aliases });
});
