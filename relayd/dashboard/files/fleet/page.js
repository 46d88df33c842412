// The fleet: who measures, what is wrong now, what has changed, and what VMs do beside their type.

import { get } from "../shared/api.js";
import { keepFresh, soon, stateLine } from "../shared/live.js";
import { commands, redraw, watchFacts } from "../shared/parts.js";
import { element, replace } from "../shared/dom.js";
import { showCaps } from "./caps.js";
import { changesPart } from "./changes.js";
import { advised, showHosts, showLinks } from "./hosts.js";
import { content, emptyState, restsOn, show } from "../shared/shell.js";

const part = (name) => element("section", { class: `part ${name}`, id: name });
const [line, summary, watch, links, changed, hosts, caps] = [stateLine(),
  ...["summary", "watch", "links", "changed", "hosts", "caps"].map(part)];
replace(content, line, summary, links, watch, changed, hosts, caps);
const changes = changesPart(changed);

async function refresh() {
  await show(async () => {
    const [fleet, watched, sites] = await Promise.all([get("v1/fleet"), get("v1/watch"), get("v1/sites")]);
    restsOn(fleet.snapshot);
    redraw(summary, [fleet.hosts, fleet.vm_caps, fleet.leg_states, Boolean(watched.watch)], () => showSummary(fleet, watched.watch));
    redraw(links, [fleet.leg_states, watched.watch?.legs], () => showLinks(links, fleet, watched.watch));
    replace(watch, watched.watch && [element("h2", {}, "The watcher"), element("div", { class: "panel" }, watchFacts(watched.watch))]);
    const isTried = Number.isFinite(watched.watch?.last_look_age_s);
    redraw(hosts, [fleet.hosts, fleet.vm_caps, fleet.problem, isTried], () => showHosts(hosts, fleet, isTried));
    redraw(caps, [sites.sites, fleet.hosts], () => showCaps(caps, sites.sites, fleet));
    await changes.refresh();
  });
  goToPart();
}

// An address may name a part (#changed), which is not there before the first answer.
let isThere = false;
function goToPart() {
  if (!isThere) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  isThere = true;
}

keepFresh(line, refresh, ({ kind }, again) => {
  if (kind !== "campaign" && kind !== "transfer") soon(again);
});

function showSummary(fleet, watched) {
  if (!fleet.configured) {
    replace(summary, emptyState("This service has no fleet",
      element("p", {}, "A fleet is the VMs that relayd may log in to and measure from. Name them in a fleet file, and start the service with it; with a daily budget it also watches them:"),
      commands("relayd serve --fleet fleet.toml\nRELAYD_SERVE_WATCH_DAILY_BUDGET_USD=2 relayd serve --fleet fleet.toml"),
      element("p", {}, "Without one, this page shows what imported measurements and the catalogue say.")));
    return;
  }
  const regions = new Set(fleet.hosts.map((host) => host.region));
  const silent = new Set(fleet.hosts.filter((host) => host.unreachable).map((host) => host.region));
  const count = (condition) => fleet.leg_states.filter((link) => link.condition === condition).length;
  const figures = [
    ["Hosts", fleet.hosts.length, ""],
    ["Regions", regions.size, ""],
    ["Regions that can't be reached", watched ? silent.size : null, silent.size ? "bad" : ""],
    ["Hosts with advice", advised(fleet).length, advised(fleet).length ? "warn" : ""],
    ["Links down", count("down"), count("down") ? "bad" : ""],
    ["Links degraded", count("degraded"), count("degraded") ? "warn" : ""],
  ];
  replace(summary, element("dl", { class: "tiles" }, figures.map(([name, value, kind]) =>
    element("div", { class: "tile" }, element("dt", {}, name), element("dd", { class: kind }, value === null ? "not watched" : String(value))))));
}
