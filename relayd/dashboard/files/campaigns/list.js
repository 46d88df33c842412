// All campaigns, the newest first; what the watcher spends; a way to start one.

import { all, get } from "../shared/api.js";
import { keepFresh, soon, stateLine } from "../shared/live.js";
import { barred, cardTable, commands, more, partsOf, redraw, since, small, spending, tag, watchFacts } from "../shared/parts.js";
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
  const parts = partsOf("watch", "start", "list");
  replace(content, line, Object.values(parts));
  let pages = 1;
  async function refresh() {
    await show(async () => {
      const [found, fleet, { watch }] = await Promise.all([
        all("v1/campaigns", "campaigns", { limit: PAGE }, { most: PAGE * pages }), get("v1/fleet"), get("v1/watch")]);
      restsOn(found.snapshot);
      redraw(parts.watch, watch, () => watch && element("section", { class: "panel" }, element("h2", {}, "The watcher"), watchFacts(watch)));
      // The form is made once: it must not lose what somebody is typing.
      redraw(parts.start, [fleet.why_not], () => (fleet.may_start_campaigns ? startForm(fleet)
        : fleet.configured && element("p", { class: "muted" }, `No campaign can be started from here. ${fleet.why_not}`)));
      redraw(parts.list, [found.campaigns, found.next_cursor, fleet.configured], () => (!found.campaigns.length ? nothingYet(fleet)
        : [element("h2", {}, "All campaigns"), cardTable("campaigns", "Campaigns, the newest first", HEADS, found.campaigns.map(row)),
          found.next_cursor && more("Show older ones", () => {
            pages += 1;
            renew();
          })]));
    });
  }
  const renew = keepFresh(line, refresh, ({ kind, data }, again) => {
    if (kind !== "campaign" && kind !== "snapshot") return;
    if (data.detail.status === "running") again();
    else soon(again);
  });
}

function row(campaign) {
  const { id, probes, usd, sent_gb: sent, started_at_s: started, finished_at_s: finished } = campaign;
  return {
    data: { campaign: id, key: id },
    kinds: { 4: probes.failed ? "warn" : "", 7: "time" },
    cells: [
      element("a", { href: `campaigns?id=${id}` }, `Campaign ${id}`),
      tag(...stateOf(campaign)),
      [phasesOf(campaign), small(` by ${startedBy(campaign)}`)],
      barred(probes.done / countOf(probes), `Probes of campaign ${id} that are done`, `${figure(probes.done)} of ${figure(countOf(probes))}`),
      figure(probes.failed), volume(sent),
      spending(usd, budgetOf(campaign), `Part of the budget of campaign ${id} that is spent`),
      [since(started), small(when(started))],
      finished === null ? UNKNOWN : duration(finished - started),
    ],
  };
}

function nothingYet({ configured, may_start_campaigns: mayStart }) {
  if (configured) {
    return emptyState("No campaign has run yet",
      element("p", {}, "A campaign measures round trips, flows, caps and aggregates among the hosts of the fleet, within a budget. ",
        mayStart ? "Start one above, or from a shell:" : "The watcher starts one when it is due."),
      commands("relayd probe --fleet fleet.toml --budget 5usd"));
  }
  return emptyState("No campaign has run yet, and this service has no fleet",
    element("p", {}, "A campaign measures among VMs of your own, over SSH and within a budget. Name them in a fleet file, then measure from a shell, or start the service with them:"),
    commands("relayd measure fleet check --fleet fleet.toml --trust-new\nrelayd probe --fleet fleet.toml --dry-run\nrelayd serve --fleet fleet.toml"),
    element("p", {}, "Measurements that you have already come in without one: ", element("code", {}, "relayd import csv measured.csv"), "."));
}
