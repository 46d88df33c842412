// All campaigns, the newest first; what the watcher spends; a way to start one.

import { get } from "../shared/api.js";
import { keepFresh, soon, stateLine } from "../shared/live.js";
import { bar, cardTable, commands, redraw, since, spending, tag, watchFacts } from "../shared/parts.js";
import { startForm } from "./start.js";
import { budgetOf, countOf, phasesOf, startedBy, stateOf } from "./state.js";
import { element, replace } from "../shared/dom.js";
import { duration, figure, UNKNOWN, volume, when } from "../shared/format.js";
import { content, emptyState, restsOn, show } from "../shared/shell.js";

const HEADS = [["Campaign"], ["State"], ["Measures"], ["Probes done"], ["Failed", "number"], ["Moved", "number"],
  ["Spent"], ["Started"], ["Took", "number"]];
const PAGE = 25;

export function listPage() {
  const line = stateLine();
  const [watchPart, listPart, startPart] = ["watch", "list", "start"].map((name) => element("div", { class: `part ${name}` }));
  replace(content, line, watchPart, startPart, listPart);
  let pages = 1;
  async function refresh() {
    await show(async () => {
      const [found, fleet, watched] = await Promise.all([firstPages(pages), get("v1/fleet"), get("v1/watch")]);
      restsOn(found.snapshot);
      redraw(watchPart, watched.watch, () => showWatch(watchPart, watched.watch));
      // The form is made once: it must not lose what somebody is typing.
      if (startPart.dataset.why !== fleet.why_not) {
        startPart.dataset.why = fleet.why_not;
        replace(startPart, fleet.may_start_campaigns ? startForm(fleet) : cannotStart(fleet));
      }
      redraw(listPart, [found.campaigns, found.next_cursor, fleet.configured], () => showList(listPart, found, fleet, async () => {
        pages += 1;
        await renew();
      }));
    });
  }
  const renew = keepFresh(line, refresh, ({ kind, data }, again) => {
    if (kind !== "campaign" && kind !== "snapshot") return;
    if (data.detail.status === "running") again();
    else soon(again);
  });
}

async function firstPages(pages) {
  let found = await get("v1/campaigns", { limit: PAGE });
  const campaigns = [...found.campaigns];
  for (let page = 1; page < pages && found.next_cursor; page += 1) {
    found = await get("v1/campaigns", { limit: PAGE, cursor: found.next_cursor });
    campaigns.push(...found.campaigns);
  }
  return { ...found, campaigns };
}

function showWatch(part, watch) {
  replace(part, watch && element("section", { class: "panel" },
    element("h2", {}, "The watcher"), watchFacts(watch)));
}

function cannotStart(fleet) {
  if (!fleet.configured) return null;
  return element("p", { class: "muted" }, `No campaign can be started from here. ${fleet.why_not}`);
}

function showList(part, { campaigns, next_cursor: more }, fleet, older) {
  if (!campaigns.length) {
    replace(part, nothingYet(fleet));
    return;
  }
  replace(part, element("h2", {}, "All campaigns"),
    cardTable("campaigns", "Campaigns, the newest first", HEADS, campaigns.map(row)),
    more && element("div", { class: "row" }, element("button", { type: "button", on: { click: older } }, "Show older ones")));
}

function row(campaign) {
  const { id, probes } = campaign;
  const [state, kind] = stateOf(campaign);
  return {
    data: { campaign: id, key: id },
    kinds: { 4: probes.failed ? "warn" : "", 7: "time" },
    cells: [
      element("a", { href: `campaigns?id=${id}` }, `Campaign ${id}`),
      tag(state, kind),
      [phasesOf(campaign), element("small", { class: "muted" }, ` by ${startedBy(campaign)}`)],
      element("span", { class: "barred" }, bar(probes.done / countOf(probes), `Probes of campaign ${id} that are done`),
        element("span", { class: "figures" }, `${figure(probes.done)} of ${figure(countOf(probes))}`)),
      figure(probes.failed),
      volume(campaign.sent_gb),
      spending(campaign.usd, budgetOf(campaign), `Part of the budget of campaign ${id} that is spent`),
      [since(campaign.started_at_s), element("small", { class: "muted" }, when(campaign.started_at_s))],
      campaign.finished_at_s === null ? UNKNOWN : duration(campaign.finished_at_s - campaign.started_at_s),
    ],
  };
}

function nothingYet(fleet) {
  if (fleet.configured) {
    return emptyState("No campaign has run yet",
      element("p", {}, fleet.may_start_campaigns
        ? "A campaign measures round trips, flows, caps and aggregates among the hosts of the fleet, within a budget. Start one above, or from a shell:"
        : "A campaign measures round trips, flows, caps and aggregates among the hosts of the fleet, within a budget. The watcher starts one when it is due."),
      commands("relayd probe --fleet fleet.toml --budget 5usd"));
  }
  return emptyState("No campaign has run yet, and this service has no fleet",
    element("p", {}, "A campaign measures among VMs of your own, over SSH and within a budget. Name them in a fleet file, then measure from a shell, or start the service with them:"),
    commands("relayd measure fleet check --fleet fleet.toml --trust-new\nrelayd probe --fleet fleet.toml --dry-run\nrelayd serve --fleet fleet.toml"),
    element("p", {}, "Measurements that you have already come in without one: ", element("code", {}, "relayd import csv measured.csv"), "."));
}
