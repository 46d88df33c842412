// The fleet: who measures, what is wrong now, what has changed, and what VMs do beside their type.

import { get } from "../shared/api.js";
import { keepFresh, soon, stateLine } from "../shared/live.js";
import { commands, partsOf, redraw, watchFacts } from "../shared/parts.js";
import { element, replace } from "../shared/dom.js";
import { capsOf } from "./caps.js";
import { changesPart } from "./changes.js";
import { advised, hostsOf, linksOf } from "./hosts.js";
import { content, emptyState, restsOn, show } from "../shared/shell.js";

const line = stateLine();
const parts = partsOf("summary", "links", "watch", "changed", "hosts", "caps");
replace(content, line, Object.values(parts));
const changes = changesPart(parts.changed);

async function refresh() {
  await show(async () => {
    const [fleet, { watch }, { sites }] = await Promise.all([get("v1/fleet"), get("v1/watch"), get("v1/sites")]);
    restsOn(fleet.snapshot);
    redraw(parts.summary, [fleet.hosts, fleet.vm_caps, fleet.leg_states, Boolean(watch)], () => summary(fleet, watch));
    redraw(parts.links, [fleet.leg_states, watch?.legs], () => linksOf(fleet, watch));
    replace(parts.watch, watch && [element("h2", {}, "The watcher"), element("div", { class: "panel" }, watchFacts(watch))]);
    const isTried = Number.isFinite(watch?.last_look_age_s);
    redraw(parts.hosts, [fleet.hosts, fleet.vm_caps, fleet.problem, isTried], () => hostsOf(fleet, isTried));
    redraw(parts.caps, [sites, fleet.hosts], () => capsOf(parts.caps, sites, fleet));
    await changes();
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

function summary(fleet, watch) {
  if (!fleet.configured) {
    return emptyState("This service has no fleet",
      element("p", {}, "A fleet is the VMs that relayd may log in to and measure from. Name them in a fleet file, and start the service with it; with a daily budget it also watches them:"),
      commands("relayd serve --fleet fleet.toml\nRELAYD_SERVE_WATCH_DAILY_BUDGET_USD=2 relayd serve --fleet fleet.toml"),
      element("p", {}, "Without one, this page shows what imported measurements and the catalogue say."));
  }
  const regions = (hosts) => new Set(hosts.map((host) => host.region)).size;
  const links = (condition) => fleet.leg_states.filter((link) => link.condition === condition).length;
  return element("dl", { class: "tiles" }, [
    ["Hosts", fleet.hosts.length], ["Regions", regions(fleet.hosts)],
    ["Regions that can't be reached", watch ? regions(fleet.hosts.filter((host) => host.unreachable)) : "not watched", "bad"],
    ["Hosts with advice", advised(fleet).length, "warn"], ["Links down", links("down"), "bad"], ["Links degraded", links("degraded"), "warn"],
  ].map(([name, value, kind]) => element("div", { class: "tile" }, element("dt", {}, name), element("dd", { class: value > 0 && kind }, String(value)))));
}
