// Where traffic goes: the links of a source to others, or the paths of a plan.

import { all, get, post } from "../shared/api.js";
import { element, replace } from "../shared/dom.js";
import { rate, volume } from "../shared/format.js";
import { fewest, linkLines, SHOWN } from "./links.js";
import { linkTable, pathTable } from "./tables.js";
import { baselineNote, places } from "../shared/places.js";
import { verdictText } from "../transfer/figures.js";
import { planOnMap } from "../transfer/paths.js";
import { loadFields } from "../plan/fields.js";
import { fromAddress, question, toAddress } from "../plan/request.js";
import { content, restsOn, show } from "../shared/shell.js";
import { WorldMap } from "../world/map.js";
import { VIEWS } from "../world/view.js";

const FEW_MISSING = 12;
const LINK_METRICS = ["aggregate", "per-flow", "rtt", "loss"];
const DEFAULTS = { metric: "aggregate", view: "path", show: "best" };
const ALLOWED = { metric: [...LINK_METRICS, "fee"], view: Object.keys(VIEWS), show: Object.keys(SHOWN) };

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
  const [many, shown] = choice("Links", "show", Object.entries(SHOWN).map(option));
  const [of, view] = choice(
    "View",
    "view",
    Object.entries(VIEWS).map(([name, { title }]) => option([name, title])),
  );
  const selects = { src, dst, show: shown, view };
  const form = element("form", { class: "row map-controls", "aria-label": "What the map shows" }, from, to, many, of);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => go({ [event.target.name]: event.target.value }));
  function fill(state) {
    for (const [name, select] of Object.entries(selects)) select.value = state[name] ?? "";
    shown.disabled = Boolean(state.dst);
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
  const planAddress = (src, dst) => `./?${toAddress({ ...request, src, dst })}`;
  const place = (region) => [region.id, region.city].filter(Boolean).join(", ");
  if (plan) {
    return {
      ...planOnMap(plan, known.regions, verdictText(plan).toLowerCase()),
      table: pathTable(plan),
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
  const metric = LINK_METRICS.includes(state.metric) ? state.metric : "aggregate";
  const whole = linkLines(links, metric);
  const lines = fewest(whole, metric, state.show);
  const said = new Map(whole.map((each) => [each.dst, each.said]));
  const many = lines.length < whole.length ? `the ${SHOWN[state.show]} of ${whole.length}` : String(lines.length);
  return {
    regions: known.regions,
    lines,
    all: whole,
    kindTitle: "Rests on",
    unit: metric === "per-flow" ? "Mbit/s" : "Gbit/s",
    marked: [state.src],
    named: lines.map((line) => line.dst),
    said: (region) => said.get(region.id) ?? place(region),
    label: `Map of ${lines.length} links from ${state.src}`,
    table: linkTable(links, cities, planAddress, metric),
    heading: [
      element("h2", {}, `From ${state.src} to ${whole.length} regions`),
      element(
        "p",
        { class: "muted" },
        `Drawn: ${many}. Choose a region on the map or in the list to send from it; a destination shows the plan. Markers that would overlap are moved apart.`,
      ),
    ],
  };
}

async function start(known) {
  const map = new WorldMap({ heard: { choose: (id) => go({ src: id, dst: "" }), state: (changed) => go(changed) } });
  const below = element("section", { class: "panel", "aria-labelledby": "figures" });
  const heading = element("div", { class: "map-heading" });
  const { form, fill } = controls(known.regions, go);
  const first = known.regions.find((region) => region.latitude_deg !== null) ?? known.regions[0];
  const missing = known.regions.filter((region) => region.latitude_deg === null || region.longitude_deg === null);
  const note = element("div");
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
    replace(
      below,
      element("h2", { id: "figures" }, "Figures"),
      shown.table,
      missing.length > 0 &&
        element(
          "details",
          { open: missing.length <= FEW_MISSING },
          element("summary", {}, `${missing.length} not on the map, because ${missing.length === 1 ? "its" : "their"} place is not known`),
          element("p", {}, missing.map((region) => region.id).join(", "), "."),
        ),
    );
    map.part.hidden = false;
    await map.show(shown, { metric: state.metric, view: state.view });
  }

  addEventListener("popstate", () => show(draw));
  await draw();
}

show(async () => {
  const [{ regions, aliases }] = await Promise.all([places(), loadFields()]);
  return start({ regions: regions.filter((region) => region.in_graph), aliases });
});
