// The fleet: who measures, what has changed, and what VMs do against their type.

import { described, shifts } from "./changes.js";
import {
  UNKNOWN, age, band, cardTable, choice, commands, content, element, emptyState, figure, gbps, get, key, linksTile,
  livePage, mbps, more, muted, partsOf, redraw, replace, restsOn, show, since, small, soon, stateTag, tag, tiles, watchFacts,
  withCode, words,
} from "../shared/kit.js";

const quiet = (text) => element("span", { class: "muted" }, text);

// An address may name a part (#changed), which is not there before the first answer.
let isThere = false;
async function refresh() {
  const [fleet, { watch }, { sites }] = await Promise.all([get("v1/fleet"), get("v1/watch"), get("v1/sites")]);
  restsOn(fleet.snapshot);
  const isTried = Number.isFinite(watch?.last_look_age_s);
  redraw(parts.summary, [fleet.hosts, fleet.vm_caps, fleet.leg_states, fleet.links_health, isTried], () => summary(fleet, watch, isTried));
  replace(parts.watch, watch && [element("h2", {}, "The watcher"), element("div", { class: "panel" }, watchFacts(watch))]);
  redraw(parts.hosts, [fleet.hosts, fleet.vm_caps, fleet.problem, isTried], () => hostsOf(fleet, isTried));
  redraw(parts.caps, [sites, fleet.hosts], () => capsOf(parts.caps, sites, fleet));
  await changes();
  if (!isThere) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  isThere = true;
}

function summary(fleet, watch, isTried) {
  if (!fleet.configured) {
    return emptyState("This service has no fleet",
      element("p", {}, "A fleet is the VMs that relayd may log in to and measure from. Name them in a fleet file, and start "
        + "the service with it; with a daily budget it also watches them:"),
      commands("relayd serve --fleet fleet.toml\nRELAYD_SERVE_WATCH_DAILY_BUDGET_USD=2 relayd serve --fleet fleet.toml"),
      element("p", {}, "Without one, this page shows what imported measurements and the catalogue say."));
  }
  const regions = (hosts) => new Set(hosts.map((host) => host.region)).size;
  const lost = regions(fleet.hosts.filter((host) => host.unreachable));
  const advised = fleet.hosts.filter((host) => trouble(fleet, host)).length;
  return tiles([
    ["Hosts", null, "", fleet.hosts.length], ["Regions", null, "", regions(fleet.hosts)],
    ["Regions that can't be reached", null, ...(!isTried ? ["unknown", "unknown", "Not tried yet."] : [lost ? "bad" : "good", lost])],
    ["Hosts with advice", null, advised ? "warn" : "", advised], linksTile(fleet, watch),
  ]);
}

// ---- hosts by region ----

const FIRST_HOSTS = 100; // of a large fleet only some are shown at once
const capsOfHost = (fleet, host) => fleet.vm_caps.filter((cap) => cap.host === host.name);
// More for hosts for which there is more to do: unreachable, or slower than others of their type.
const trouble = (fleet, host) => 2 * Number(host.unreachable !== null)
  + Number(capsOfHost(fleet, host).some((cap) => cap.recreate));
const remedy = (tagName, ...said) => element(tagName, { class: "remedy" }, said);

function hostsOf(fleet, isWatched) {
  if (!fleet.configured) return null;
  const title = element("h2", {}, "Hosts by region");
  if (fleet.problem) return [title, element("p", { class: "problem" }, fleet.problem)];
  const reached = ({ unreachable, remedy: found }) => (unreachable
    ? element("div", { class: "trouble" }, stateTag("bad", "unreachable"), ` ${unreachable}.`,
      found && remedy("div", element("strong", {}, "What to do: "), withCode(found)))
    : isWatched ? stateTag("good", "no trouble seen") : stateTag("unknown", "not tried"));
  const sorted = [...fleet.hosts].sort((a, b) => trouble(fleet, b) - trouble(fleet, a) || a.region.localeCompare(b.region));
  return [title, cardTable("hosts", "As the fleet file has them, and what each VM was measured to do", [
    words("Region", "region"), words("Host", ({ name, region, zone }) =>
      [name === region ? quiet("same as region") : name, zone && small(` zone ${zone}`)]),
    words("VM type", ({ vm_type: type }) => type || quiet("not said")), words("Reached", reached),
    words("Measured caps of this VM", (host) => vmCaps(capsOfHost(fleet, host))),
  ], sorted, { first: FIRST_HOSTS, key: ({ name }) => name }),
  muted(withCode("`relayd measure fleet check` logs in to each host and says what stands in its way: tools, clocks, "
    + "firewalls, VMs worth recreating."))];
}

const rate = (value) => (value >= 1000 ? gbps(value / 1000) : mbps(value));
const vmCaps = (caps) => (caps.length ? caps.map((cap) => element("div", { class: "vm-cap" }, `${cap.cap} ${rate(cap.mbps)}`,
  small(since(cap.measured_at_s, cap.catalogue_mbps ? ` of ${gbps(cap.catalogue_mbps / 1000)}, ` : " ")),
  cap.recreate && remedy("span", " ", tag("recreate it", "warn"), ` ${cap.text}`))) : quiet("none measured"));

// ---- the caps of one VM in each region, as bars against what its type should do ----

const CAPS = [["egress_gbps", "Egress", "Gbit/s"], ["ingress_gbps", "Ingress", "Gbit/s"], ["window_mb", "TCP window", "MB"]];
const FIRST_SITES = 15;
let chosen = null;

function capsOf(part, sites, fleet) {
  const hosted = new Set(fleet.hosts.map((host) => host.region));
  const measured = (site) => CAPS.some(([name]) => site[name].source === "measured");
  const choices = [["fleet", "of the fleet", (site) => hosted.has(site.region)],
    ["measured", "with a measured cap", measured], ["all", "all", () => true]]
    .map(([name, text, test]) => ({ name, text, found: sites.filter(test) })).filter(({ found }) => found.length);
  const shown = choices.find(({ name }) => name === chosen) ?? choices[0];
  const options = choices.map(({ name, text, found }) => [name, `${text} (${found.length})`]);
  return [element("h2", {}, "Caps of VMs against their type"),
    element("div", { class: "row" }, choice("Regions", options, shown?.name, (name) => {
      chosen = name;
      replace(part, capsOf(part, sites, fleet));
      part.querySelector("select").focus();
    }), element("span", { class: "legend", "aria-hidden": "true" }, key("range", "low to high"), key("expected", "expected"))),
    !sites.some(measured) && muted("No cap was measured yet: these are what the catalogue says of each VM type. ",
      element("code", {}, "relayd probe --phases rtt,caps"), " measures them."),
    capTable(shown.found)];
}

function capTable(sites) {
  const most = Object.fromEntries(CAPS.map(([name]) => [name, Math.max(0, ...sites
    .flatMap((site) => [site[name].high, site.reference?.[name]]).filter((value) => Number.isFinite(value)))]));
  // By how much the worst figure falls short of the type; what is not measured falls short of nothing.
  const falls = (site) => Math.min(...CAPS.map(([name]) =>
    (site[name].source === "baseline" || !site.reference?.[name] ? 1 : site[name].expected / site.reference[name])));
  return cardTable("caps", "One VM of each region over all peers together: expected (low to high), and how that compares with the "
    + "catalogue; what falls shortest of its type first",
  [words("Region and VM type", ([site, regions]) =>
    [named(site, regions), site.reference?.burstable && tag("burstable", "warn")]),
  ...CAPS.map((cap) => ({ ...words(cap[1], ([site]) => cell(site, cap, most[cap[0]])), unit: cap[2] }))],
  rowsOf(sites).sort(([a], [b]) => falls(a) - falls(b)), { first: FIRST_SITES, key: ([site]) => site.region });
}

// Regions of one VM type of which nothing was measured say the same: they share a row, [site, regions].
function rowsOf(sites) {
  const isOwn = (site) => !site.vm_type || CAPS.some(([name]) => site[name].source !== "baseline");
  const alike = Map.groupBy(sites, (site) => (isOwn(site) ? `region ${site.region}` : `type ${site.vm_type}`));
  return [...alike.values()].map((found) => [found[0], found.map(({ region }) => region)]);
}

const named = (site, regions) => (regions.length === 1 ? [site.region, small(site.vm_type || "type not known")]
  : [site.vm_type, element("details", { class: "regions" }, element("summary", {}, `${regions.length} regions, none measured`),
    small(regions.map((region) => region.slice(region.indexOf(":") + 1)).join(", ")))]);

function cell(site, [name, title, unit], most) {
  const { expected, low, high, source, basis } = site[name];
  const reference = site.reference?.[name] ?? null;
  if (expected === null) return quiet("not known");
  const [text, kind] = compared(site[name], reference);
  const range = `${figure(low)} to ${figure(high)}`;
  const label = `${title} of ${site.region}: ${figure(expected)} ${unit}, ${range}; catalogue ${figure(reference)}`;
  return element("div", { class: `cap ${source}`, title: basis }, band(site[name], most, label),
    element("span", { class: "value" }, element("strong", {}, figure(expected)), ` (${range})`),
    element("small", { class: kind }, text), source !== "baseline" && small(`${source}, `, age(site[name])));
}

// The ratio in words; within the bounds, it is no difference.
function compared({ source, expected, low, high }, reference) {
  if (!(reference > 0)) return [`no reference: ${UNKNOWN}`, "muted"];
  if (source === "baseline") return ["baseline: not measured", "muted"];
  if (low <= reference && reference <= high) return ["as its type", "good"];
  const ratio = expected / reference;
  const percent = `${Math.round(100 * Math.abs(ratio - 1))} %`;
  if (ratio < 1) return [`${percent} below its type`, "warn"];
  return [ratio >= 2 ? `${ratio.toFixed(1)} times its type` : `${percent} above its type`, "good"];
}

// ---- what has changed since yesterday, or since another time: from snapshots that the store keeps ----

const TIMES = [["3600", "an hour ago"], ["86400", "yesterday"], ["604800", "a week ago"], ["2592000", "a month ago"]];
const SOURCES = [["measured", "measured here"], ["inferred", "inferred from others"], ["", "all"]];
const [PAGE, MOST] = [20, 1000];

// Fills a part, and returns what renews it.
function changesPart(part) {
  const asked = { since_s: "86400", source: "measured", pages: 1 };
  const body = element("div");
  const ask = (given) => {
    Object.assign(asked, { pages: 1, ...given });
    show(renew);
  };
  replace(part, element("h2", {}, "What has changed"), element("div", { class: "row" },
    choice("Since", TIMES, asked.since_s, (since_s) => ask({ since_s })),
    choice("Show", SOURCES, asked.source, (source) => ask({ source }))), body);
  async function renew() {
    const { since_s, source, pages } = asked;
    const limit = Math.min(MOST, PAGE * pages);
    const found = await get("v1/changes", { since_s, source, limit });
    // The time that is asked for moves on; what was found is what counts.
    redraw(body, { ...found, ...asked }, () => [described(found, (seconds) => ask({ since_s: seconds })), shifts(found.shifts),
      found.next_cursor && limit < MOST && more(`Show more of ${figure(found.total)}`, () => ask({ pages: pages + 2 }))]);
  }
  return renew;
}

const parts = partsOf("summary", "watch", "changed", "hosts", "caps");
const changes = changesPart(parts.changed);
livePage(content, Object.values(parts), refresh, ({ kind }, again) => {
  if (kind !== "campaign" && kind !== "transfer") soon(again);
});
