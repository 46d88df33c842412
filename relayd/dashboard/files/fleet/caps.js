// The caps of one VM in each region, as bullet bars beside what its type should do.

import { band } from "../shared/band.js";
import { age, cardTable, choice, small, tag } from "../shared/parts.js";
import { element, replace } from "../shared/dom.js";
import { figure, UNKNOWN } from "../shared/format.js";

const FIGURES = [
  ["egress_gbps", "Egress", "Gbit/s"],
  ["ingress_gbps", "Ingress", "Gbit/s"],
  ["window_mb", "TCP window", "MB"],
];
const FIRST = 15;
let chosen = null;

export function capsOf(part, sites, fleet) {
  const hosted = new Set(fleet.hosts.map((host) => host.region));
  const measured = (site) => FIGURES.some(([name]) => site[name].source === "measured");
  const choices = [["fleet", "of the fleet", (site) => hosted.has(site.region)], ["measured", "with a measured cap", measured], ["all", "all", () => true]]
    .map(([name, text, test]) => ({ name, text, found: sites.filter(test) })).filter(({ found }) => found.length);
  const shown = choices.find(({ name }) => name === chosen) ?? choices[0];
  const options = choices.map(({ name, text, found }) => [name, `${text} (${found.length})`]);
  return [element("h2", {}, "Caps of VMs against their type"),
    element("div", { class: "row" }, choice("Regions", options, shown?.name, (name) => {
      chosen = name;
      replace(part, capsOf(part, sites, fleet));
      part.querySelector("select").focus();
    }), legend()),
    !sites.some(measured) && element("p", { class: "muted" }, "No cap was measured yet: these are what the catalogue says of each VM type. ",
      element("code", {}, "relayd probe --phases rtt,caps"), " measures them."),
    table(shown.found)];
}

const legend = () => element("span", { class: "legend muted", "aria-hidden": "true" },
  [["range", "low to high"], ["expected", "expected"], ["reference", "catalogue"]].map(([kind, text]) => [element("span", { class: `key ${kind}` }), text]));

function table(sites) {
  const most = Object.fromEntries(FIGURES.map(([name]) => [name, Math.max(...sites.flatMap((site) => [site[name].high, site.reference?.[name]])
    .filter((value) => Number.isFinite(value)), 0)]));
  // By how much the worst figure falls short of the type; what is not measured falls short of nothing.
  const falls = (site) => Math.min(...FIGURES.map(([name]) =>
    (site[name].source === "baseline" || !site.reference?.[name] ? 1 : site[name].expected / site.reference[name])));
  const rows = rowsOf(sites).sort(([a], [b]) => falls(a) - falls(b));
  const caption = "One VM of each region over all peers together: expected (low to high), and how that compares with the catalogue; what falls shortest of its type first";
  return cardTable("caps", caption, [["Region and VM type"], ...FIGURES.map(([, title, unit]) => [title, "", unit])], rows.map(([site, regions]) => ({
    data: { region: site.region, key: site.region },
    cells: [[named(site, regions), site.reference?.burstable && tag("burstable", "warn")],
      ...FIGURES.map(([name, title, unit]) => cell(site, name, title, unit, most[name]))],
  })), FIRST);
}

// Regions of one VM type of which nothing was measured say the same: they share a row, [site, regions].
function rowsOf(sites) {
  const alike = new Map();
  for (const site of sites) {
    const own = !site.vm_type || FIGURES.some(([name]) => site[name].source !== "baseline");
    const key = own ? `region ${site.region}` : `type ${site.vm_type}`;
    alike.set(key, [alike.get(key)?.[0] ?? site, [...(alike.get(key)?.[1] ?? []), site.region]]);
  }
  return [...alike.values()];
}

const named = (site, regions) => (regions.length === 1 ? [site.region, small(site.vm_type || "type not known")]
  : [site.vm_type, element("details", { class: "regions" }, element("summary", {}, `${regions.length} regions, none measured`),
    small(regions.map((region) => region.slice(region.indexOf(":") + 1)).join(", ")))]);

function cell(site, name, title, unit, most) {
  const estimate = site[name];
  const reference = site.reference?.[name] ?? null;
  if (estimate.expected === null) return element("span", { class: "muted" }, "not known");
  const words = compared(estimate, reference);
  const label = `${title} of ${site.region}: ${figure(estimate.expected)} ${unit}, ${figure(estimate.low)} to ${figure(estimate.high)}; catalogue ${figure(reference)}`;
  return element("div", { class: `cap ${estimate.source}`, title: estimate.basis }, band(estimate, most, label, { reference }),
    element("span", { class: "value" }, element("strong", {}, figure(estimate.expected)), ` (${figure(estimate.low)} to ${figure(estimate.high)})`),
    element("small", { class: words.kind }, words.text), estimate.source !== "baseline" && small(`${estimate.source}, `, age(estimate)));
}

// The ratio in words; within the bounds, it is no difference.
export function compared(estimate, reference) {
  if (!(reference > 0)) return { text: `no reference: ${UNKNOWN}`, kind: "muted" };
  if (estimate.source === "baseline") return { text: "baseline: not measured", kind: "muted" };
  const ratio = estimate.expected / reference;
  const share = Math.round(100 * Math.abs(ratio - 1));
  if (estimate.low <= reference && reference <= estimate.high) return { text: "as its type", kind: "good" };
  return ratio < 1 ? { text: `${share} % below its type`, kind: "warn" }
    : { text: ratio >= 2 ? `${ratio.toFixed(1)} times its type` : `${share} % above its type`, kind: "good" };
}
