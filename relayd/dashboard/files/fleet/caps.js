// The caps of one VM in each region, as bullet bars beside what its type should do.

import { band } from "../shared/band.js";
import { age, cardTable, tag } from "../shared/parts.js";
import { element, replace } from "../shared/dom.js";
import { figure, UNKNOWN } from "../shared/format.js";

const FIGURES = [
  ["egress_gbps", "Egress", "Gbit/s"],
  ["ingress_gbps", "Ingress", "Gbit/s"],
  ["window_mb", "TCP window", "MB"],
];
const FIRST = 15;
let chosen = null;
let whole = false;

export function showCaps(part, sites, fleet) {
  const members = new Set(fleet.hosts.map((host) => host.region));
  const measured = (site) => FIGURES.some(([name]) => site[name].source === "measured");
  const choices = [["fleet", "of the fleet", (site) => members.has(site.region)], ["measured", "with a measured cap", measured], ["all", "all", () => true]]
    .map(([name, text, test]) => ({ name, text, sites: sites.filter(test) })).filter((choice) => choice.sites.length);
  const shown = choices.find((choice) => choice.name === chosen) ?? choices[0];
  const select = element("select", { on: { change: (event) => {
    chosen = event.target.value;
    whole = false;
    showCaps(part, sites, fleet);
    part.querySelector("select")?.focus();
  } } }, choices.map((choice) => element("option", { value: choice.name, selected: choice === shown }, `${choice.text} (${choice.sites.length})`)));
  replace(part, element("h2", {}, "Caps of VMs against their type"),
    element("div", { class: "row" }, element("label", {}, "Regions ", select), legend()),
    !sites.some(measured) && element("p", { class: "muted" }, "No cap was measured yet: these are what the catalogue says of each VM type. ",
      element("code", {}, "relayd probe --phases rtt,caps"), " measures them."),
    table(shown.sites, () => {
      whole = true;
      showCaps(part, sites, fleet);
    }));
}

function legend() {
  return element("span", { class: "legend muted", "aria-hidden": "true" },
    element("span", { class: "key range" }), "low to high", element("span", { class: "key expected" }), "expected",
    element("span", { class: "key reference" }), "catalogue");
}

function table(sites, showAll) {
  const rows = rowsOf(sites).sort((a, b) => falls(a.site) - falls(b.site));
  const shown = whole ? rows : rows.slice(0, FIRST);
  const most = Object.fromEntries(FIGURES.map(([name]) => [name, Math.max(...sites.flatMap((site) => [site[name].high, site.reference?.[name]])
    .filter((value) => Number.isFinite(value)), 0)]));
  const caption = "One VM of each region over all peers together: expected (low to high), and how that compares with the catalogue; what falls shortest of its type first";
  return [cardTable("caps", caption,
    [["Region and VM type"], ...FIGURES.map(([, title, unit]) => [title, "", unit])], shown.map(({ site, regions }) => ({
      data: { region: site.region, key: site.region },
      cells: [
        [named(site, regions), site.reference?.burstable && tag("burstable", "warn")],
        ...FIGURES.map(([name, title, unit]) => cell(site, name, title, unit, most[name])),
      ],
    }))),
  rows.length > shown.length && element("div", { class: "row" }, element("button", { type: "button", on: { click: showAll } }, `Show all ${rows.length}`))];
}

// By how much the worst figure falls short of the type; what is not measured falls short of nothing.
function falls(site) {
  const ratios = FIGURES.map(([name]) => (site[name].source === "baseline" || !site.reference?.[name] ? 1 : site[name].expected / site.reference[name]));
  return Math.min(...ratios);
}

// Regions of one VM type of which nothing was measured say the same: they share a row.
function rowsOf(sites) {
  const rows = [];
  const alike = new Map();
  for (const site of sites) {
    const known = FIGURES.some(([name]) => site[name].source !== "baseline");
    if (known || !site.vm_type) {
      rows.push({ site, regions: [site.region] });
    } else if (alike.has(site.vm_type)) {
      alike.get(site.vm_type).regions.push(site.region);
    } else {
      alike.set(site.vm_type, { site, regions: [site.region] });
    }
  }
  return [...rows, ...alike.values()];
}

function named(site, regions) {
  const small = (text) => element("small", { class: "muted" }, text);
  if (regions.length === 1) return [site.region, small(site.vm_type || "type not known")];
  return [site.vm_type, element("details", { class: "regions" }, element("summary", {}, `${regions.length} regions, none measured`),
    small(regions.map((region) => region.slice(region.indexOf(":") + 1)).join(", ")))];
}

function cell(site, name, title, unit, most) {
  const estimate = site[name];
  const reference = site.reference?.[name] ?? null;
  if (estimate.expected === null) return element("span", { class: "muted" }, "not known");
  const words = compared(estimate, reference);
  const label = `${title} of ${site.region}: ${figure(estimate.expected)} ${unit}, ${figure(estimate.low)} to ${figure(estimate.high)}; catalogue ${figure(reference)}`;
  return element("div", { class: `cap ${estimate.source}`, title: estimate.basis },
    band(estimate, most, label, { reference }),
    element("span", { class: "value" }, element("strong", {}, figure(estimate.expected)), ` (${figure(estimate.low)} to ${figure(estimate.high)})`),
    element("small", { class: words.kind }, words.text),
    estimate.source !== "baseline" && element("small", { class: "muted" }, `${estimate.source}, `, age(estimate)));
}

// The ratio in words; within the bounds, it is no difference.
export function compared(estimate, reference) {
  if (!(reference > 0)) return { text: `no reference: ${UNKNOWN}`, kind: "muted" };
  if (estimate.source === "baseline") return { text: "baseline: not measured", kind: "muted" };
  const ratio = estimate.expected / reference;
  if (estimate.low <= reference && reference <= estimate.high) return { text: "as its type", kind: "good" };
  if (ratio >= 2) return { text: `${ratio.toFixed(1)} times its type`, kind: "good" };
  const share = Math.round(100 * Math.abs(ratio - 1));
  return ratio < 1 ? { text: `${share} % below its type`, kind: "warn" } : { text: `${share} % above its type`, kind: "good" };
}
