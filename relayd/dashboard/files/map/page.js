// Where traffic goes: the arcs of a source to all others, or the ways of a plan.

import { all, get, post } from "../shared/api.js";
import { chart } from "../shared/chart.js";
import { element, replace } from "../shared/dom.js";
import { rate, volume } from "../shared/format.js";
import { KINDS, SOURCES, specification, world } from "./chart.js";
import { legend } from "./legend.js";
import { VIEWS } from "./places.js";
import { linkArcs, linkTable, wayArcs, wayTable } from "./rows.js";
import { baselineNote, places } from "../shared/places.js";
import { verdictText } from "../transfer/figures.js";
import { loadFields } from "../plan/fields.js";
import { fromAddress, question, toAddress } from "../plan/request.js";
import { content, restsOn, show } from "../shared/shell.js";

const SOURCE_COLOURS = { measured: "chosen", inferred: "cap", baseline: "direct" };
const KIND_COLOURS = { chosen: "chosen", direct: "direct", "best relay": "relay" };
const METRICS = { aggregate: "one VM pair, Gbit/s", "per-flow": "one flow, Mbit/s" };
const NARROWEST = 280;

const choice = (label, name, options) => {
  const select = element("select", { name, id: `show-${name}` }, options);
  return [element("div", { class: "choice" }, element("label", { for: select.id }, label), select), select];
};
const option = ([value, text]) => element("option", { value }, text);

function regionOptions(regions) {
  const providers = [...new Set(regions.map((region) => region.provider))].sort();
  return providers.map((provider) =>
    element(
      "optgroup",
      { label: provider },
      regions
        .filter((region) => region.provider === provider)
        .sort((a, b) => a.id.localeCompare(b.id))
        .map((region) => option([region.id, region.city ? `${region.id} (${region.city})` : region.id])),
    ),
  );
}

function controls(regions, go) {
  const [from, src] = choice("From", "src", regionOptions(regions));
  const [to, dst] = choice("To", "dst", [option(["", "all regions"]), regionOptions(regions)]);
  const [by, metric] = choice("Thickness", "metric", Object.entries(METRICS).map(option));
  const [of, view] = choice(
    "View",
    "view",
    Object.entries(VIEWS).map(([name, { title }]) => option([name, title])),
  );
  const selects = { src, dst, metric, view };
  const form = element("form", { class: "row map-controls", "aria-label": "What the map shows" }, from, to, by, of);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => go({ [event.target.name]: event.target.value }));
  function fill(state) {
    for (const [name, select] of Object.entries(selects)) select.value = state[name] ?? "";
    metric.disabled = Boolean(state.dst);
  }
  return { form, fill };
}

// A name is a region, or an alias whose first member is preferred; else the API says what is wrong.
const resolved = ({ regions, aliases }, name) =>
  regions.some((region) => region.id === name) ? name : (aliases[name]?.[0] ?? name);

async function found(state, request) {
  if (!state.dst) {
    return all("v1/links", "links", { src: state.src });
  }
  const { isBody, content: asked } = question({ ...request, src: state.src, dst: state.dst, frontier: "false" });
  const plan = await (isBody ? post("v1/plans", asked) : get("v1/plans", asked));
  return { plan, snapshot: plan.snapshot };
}

function described({ plan, links }, state, known, request) {
  const cities = new Map(known.regions.map((region) => [region.id, region.city]));
  const planAddress = (src, dst) => `plan?${toAddress({ ...request, src, dst })}`;
  const place = (region) => [region.id, region.city].filter(Boolean).join(", ");
  if (plan) {
    const arcs = wayArcs(plan);
    return {
      arcs,
      kinds: KINDS,
      kindTitle: "Path",
      kindColours: KIND_COLOURS,
      unit: "Gbit/s",
      marked: [...new Set(arcs.flatMap((each) => [each.src, each.dst]))],
      said: place,
      table: wayTable(plan),
      title: `Map of ${verdictText(plan).toLowerCase()}, ${plan.request.src} to ${plan.request.dst}: ${arcs.length} arcs`,
      heading: [
        element("h2", {}, `${plan.request.src} → ${plan.request.dst}: ${verdictText(plan)}`),
        element(
          "p",
          {},
          `${rate(plan.throughput_gbps)} Gbit/s for ${volume(plan.request.volume_gb)}. `,
          plan.reason,
          " ",
          element("a", { href: planAddress(plan.request.src, plan.request.dst) }, "The plan in full"),
        ),
      ],
    };
  }
  const arcs = linkArcs(links, state.metric);
  const said = new Map(arcs.map((each) => [each.dst, each.said]));
  return {
    arcs,
    kinds: SOURCES,
    kindTitle: "Rests on",
    kindColours: SOURCE_COLOURS,
    unit: state.metric === "per-flow" ? "Mbit/s" : "Gbit/s",
    marked: [state.src],
    said: (region) => said.get(region.id) ?? place(region),
    table: linkTable(links, cities, planAddress, state.metric),
    title: `Map of ${arcs.length} arcs from ${state.src}, as thick as ${METRICS[state.metric]}`,
    heading: [
      element("h2", {}, `From ${state.src} to ${arcs.length} regions`),
      element(
        "p",
        { class: "muted" },
        "Choose a region on the map or in the list to send from it; a destination shows the plan. Markers that would overlap are moved apart.",
      ),
    ],
  };
}

async function start(known) {
  const land = await world();
  const holder = element("div", { class: "map", id: "map" });
  const key = element("div");
  const readout = element("p", { class: "readout muted" });
  const below = element("section", { class: "panel", "aria-labelledby": "arcs" });
  const heading = element("div", { class: "map-heading" });
  const { form, fill } = controls(known.regions, go);
  const first = known.regions.find((region) => region.latitude_deg !== null) ?? known.regions[0];
  const missing = known.regions.filter((region) => region.latitude_deg === null || region.longitude_deg === null);
  const note = element("div");
  replace(content, form, note, heading, element("div", { class: "panel map-panel" }, holder, readout, key), below);
  let drawn = null;
  let latest = 0;

  function read() {
    const query = new URLSearchParams(location.search);
    const named = (name, choices, otherwise) => (Object.hasOwn(choices, query.get(name)) ? query.get(name) : otherwise);
    return {
      src: resolved(known, query.get("src") || first.id),
      dst: query.get("dst") ? resolved(known, query.get("dst")) : "",
      metric: named("metric", METRICS, "aggregate"),
      view: named("view", VIEWS, "world"),
    };
  }

  function go(changes) {
    const state = { ...read(), ...changes };
    const query = new URLSearchParams(toAddress({ ...fromAddress(location.search), src: state.src, dst: state.dst }));
    if (state.metric !== "aggregate") query.set("metric", state.metric);
    if (state.view !== "world") query.set("view", state.view);
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
      replace(holder);
      replace(key);
      drawn = null;
      throw error;
    });
    if (mine !== latest) return;
    restsOn(answer.snapshot);
    const shown = described(answer, state, known, request);
    replace(note, baselineNote(answer.snapshot));
    replace(heading, shown.heading);
    replace(
      below,
      element("h2", { id: "arcs" }, "Figures"),
      shown.table,
      missing.length > 0 &&
        element(
          "p",
          {},
          "Not on the map, because their place is not known: ",
          missing.map((region) => region.id).join(", "),
          ".",
        ),
    );
    drawn = { ...shown, viewName: state.view };
    await put();
  }

  let width = 0;
  async function put() {
    if (!drawn) return;
    width = Math.max(NARROWEST, Math.floor(holder.clientWidth));
    const shown = drawn;
    replace(key, legend({ ...shown, regions: known.regions, width }));
    const hint = "Point at an arc or a region for its figures.";
    readout.textContent = hint;
    await chart(holder, () => specification({ ...shown, land, regions: known.regions, width }), {
      title: shown.title,
      ready: (view) => {
        const datum = (item) => item?.datum?.properties ?? item?.datum;
        view.addEventListener("click", (event, item) => {
          if (datum(item)?.id) go({ src: datum(item).id, dst: "" });
        });
        view.addEventListener("mouseover", (event, item) => {
          if (datum(item)?.said) readout.textContent = datum(item).said;
        });
        view.addEventListener("mouseout", () => {
          readout.textContent = hint;
        });
      },
    });
  }
  // Drawn again for another width; the height that follows from it is not looked at.
  new ResizeObserver(() => {
    if (drawn && Math.abs(holder.clientWidth - width) > 8) put();
  }).observe(holder);
  addEventListener("popstate", () => show(draw));
  await draw();
}

show(async () => {
  const [{ regions, aliases }] = await Promise.all([places(), loadFields()]);
  return start({ regions: regions.filter((region) => region.in_graph), aliases });
});
