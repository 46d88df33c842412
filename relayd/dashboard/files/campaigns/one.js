// One campaign: how far it is, what it spends, what failed and what to do about it.

import { may, needsScope } from "../shared/access.js";
import { get, post } from "../shared/api.js";
import { asksTwice } from "../shared/asking.js";
import { keepFresh, soon, stateLine } from "../shared/live.js";
import { bar, cardTable, redraw, since, spending, tag, withCode } from "../shared/parts.js";
import { resumeForm } from "./start.js";
import { budgetOf, byWatcher, countOf, phasesOf, stageName, startedBy, stateOf } from "./state.js";
import { element, facts, replace } from "../shared/dom.js";
import { duration, figure, UNKNOWN, usd, volume, when } from "../shared/format.js";
import { content, fail, restsOn, show } from "../shared/shell.js";

const STAGE_HEADS = [["Phase"], ...["Done", "Failed", "Left", "Moved", "Egress"].map((title) => [title, "number"])];
const ENDED = new Set(["done", "partly done", "interrupted", "failed"]);

export function onePage(id) {
  const line = stateLine();
  const parts = Object.fromEntries(["head", "now", "stop", "resume", "stages", "failures"].map((name) => [name, element("div", { class: `part ${name}` })]));
  replace(content, element("p", {}, element("a", { href: "campaigns" }, "All campaigns")), parts.head, line,
    parts.now, parts.stop, parts.resume, parts.failures, parts.stages);
  document.title = `Campaign ${id} - relayd`;
  let newest = null;
  async function refresh() {
    await show(async () => {
      const found = await get(`v1/campaigns/${encodeURIComponent(id)}`);
      newest = found;
      restsOn(found.snapshot);
      showAll(parts, found);
      await offerToStop(parts.stop, found.campaign);
      await offerToGoOn(parts.resume, found.campaign);
    });
  }
  keepFresh(line, refresh, ({ kind, data }, again) => {
    if (kind !== "campaign" || data.subject !== String(id)) return;
    // What the event says is shown at once; stages and failures are asked for.
    if (newest) {
      newest.progress = { ...newest.progress, ...data.detail, at_s: data.at_s };
      try {
        showNow(parts.now, newest);
      } catch (error) {
        fail(error);
      }
    }
    if (data.detail.status === "running") again();
    else soon(again);
  });
}

function showAll(parts, found) {
  const { campaign, progress } = found;
  const [state, kind] = stateOf(campaign, progress);
  replace(parts.head, element("h2", {}, `Campaign ${campaign.id} `, tag(state, kind)));
  showNow(parts.now, found);
  redraw(parts.failures, found.failures, () => showFailures(parts.failures, found));
  redraw(parts.stages, found.stages, () => showStages(parts.stages, found));
}

async function offerToStop(part, campaign) {
  const running = campaign.may_be_stopped;
  const allowed = running && (await may("probe"));
  redraw(part, [running, allowed], () => replace(part, allowed ? stopping(campaign)
    : running && needsScope("Stopping a campaign", "probe")));
}

const stopping = (campaign) => asksTwice("Stop this campaign", "Stop it now",
  "Probes under way end on all hosts within seconds. What was measured is kept; what they may have sent counts as spent. It can go on later.",
  async (done) => {
    await post(`v1/campaigns/${campaign.id}/stop`, {});
    done("Stopping: its probes are being ended.");
  });

// Only the newest campaign can go on, and only where its kind is started by request.
async function offerToGoOn(part, campaign) {
  let may = campaign.finished_at_s === null && !campaign.is_running && !byWatcher(campaign);
  if (may) {
    const [fleet, newest] = await Promise.all([get("v1/fleet"), get("v1/campaigns", { limit: 1 })]);
    may = fleet.may_start_campaigns && newest.campaigns[0].id === campaign.id;
  }
  redraw(part, [may, may && campaign.usd], () => replace(part, may && resumeForm(campaign)));
}

function showNow(part, { campaign, progress }) {
  const running = campaign.is_running && progress?.status === "running";
  replace(part, element("div", { class: "grid" },
    element("section", { class: "panel", "aria-label": "Progress" }, element("h3", {}, "Progress"),
      running ? current(progress) : stopped(campaign, progress), overall(campaign)),
    element("section", { class: "panel", "aria-label": "Spending" }, element("h3", {}, "Spending"), spent(campaign, progress)),
    element("section", { class: "panel", "aria-label": "What was asked" }, element("h3", {}, "What was asked"), asked(campaign))));
}

function current(progress) {
  const ended = progress.done + progress.failed;
  return facts([
    ["Phase", stageName(progress.stage)],
    ["Round", progress.rounds ? `${progress.round} of ${progress.rounds}` : UNKNOWN],
    ["Probes of it", element("span", { class: "barred" }, bar(ended / progress.total, "Probes of this phase that have ended"),
      element("span", { class: "figures" }, `${figure(ended)} of ${figure(progress.total)}${progress.failed ? `, ${progress.failed} failed` : ""}`))],
    ["Left", progress.left_s === undefined ? UNKNOWN : `about ${duration(progress.left_s)} of this phase`],
  ]);
}

const ENDINGS = {
  interrupted: "It was interrupted. What was measured is kept; starting it again goes on from there.",
  "partly done": "It ended with something left to do: `relayd probe --resume` tries again.",
  started: "It has begun.",
};

function stopped(campaign, progress) {
  if (campaign.finished_at_s !== null) return null;
  if (progress?.status === "failed" && !campaign.is_running) return element("p", { class: "problem" }, `It ended early: ${progress.problem}`);
  const ending = ENDED.has(progress?.status);
  const text = campaign.is_running && ending ? "It is ending."
    : campaign.is_running ? "It is being prepared: hosts are logged in to, links are chosen."
    : byWatcher(campaign) ? "Something is left to do. The watcher goes on with it when the hour and the daily budget allow."
    : ENDINGS[progress?.status] ?? "It is not finished and does not run here: `relayd probe --resume` goes on with it.";
  return element("p", {}, withCode(text));
}

function overall(campaign) {
  const { probes } = campaign;
  const all = countOf(probes);
  const pairs = [
    ["In all", element("span", { class: "barred" }, bar(all ? probes.done / all : 0, "Probes of the campaign that are done"),
      element("span", { class: "figures" }, `${figure(probes.done)} of ${figure(all)} done`))],
    ["Failed", element("span", { class: probes.failed ? "warn" : null }, figure(probes.failed))],
    ["Started", element("span", {}, since(campaign.started_at_s, `${when(campaign.started_at_s)} (`, ")"))],
  ];
  if (campaign.finished_at_s !== null) {
    pairs.push(["Ended", `${when(campaign.finished_at_s)}, after ${duration(campaign.finished_at_s - campaign.started_at_s)}`]);
  }
  return facts(pairs);
}

// An event is newer than what was asked for before it.
function spent(campaign, progress) {
  const dollars = Math.max(campaign.usd, progress?.usd ?? 0);
  const moved = Math.max(campaign.sent_gb, progress?.sent_gb ?? 0);
  const budget = budgetOf(campaign);
  return facts([
    ["Egress", spending(dollars, budget, "Part of the budget that is spent")],
    ["Still allowed", budget ? usd(Math.max(0, budget - dollars)) : UNKNOWN],
    ["Moved", volume(moved)],
  ]);
}

function asked(campaign) {
  const spec = campaign.options.wish ?? {};
  const pairs = spec.pairs ?? [];
  return facts([
    ["By", startedBy(campaign)],
    ["Measures", phasesOf(campaign)],
    ["Pairs", pairs.length ? pairsList(pairs, 6) : spec.thorough ? "all" : "those that matter most"],
    ["Connections", `at most ${spec.connections ?? UNKNOWN} a probe`],
    ["Tool", campaign.options.method?.tool ?? campaign.options.tool ?? UNKNOWN],
  ]);
}

function pairsList(pairs, most) {
  const shown = pairs.slice(0, most).map(([src, dst]) => element("li", {}, `${src} → ${dst}`));
  if (pairs.length > most) shown.push(element("li", { class: "muted" }, `and ${pairs.length - most} more`));
  return element("ul", { class: "pairs" }, shown);
}

function showFailures(part, { failures }) {
  if (!failures.length) {
    replace(part);
    return;
  }
  replace(part, element("h2", {}, "What failed, and what to do"), element("ul", { class: "failures" }, failures.map(failure)));
}

function failure(found) {
  const count = `${found.probes} ${found.probes === 1 ? "probe" : "probes"}`;
  const where = found.stages.map(stageName).join(", ");
  const common = found.hosts.length ? `Part of all of them: ${found.hosts.join(", ")}. ` : "";
  const tries = `${where}; ${found.attempts} ${found.attempts === 1 ? "try" : "tries"}`;
  return element("li", { class: "panel", dataset: { key: found.problem } },
    element("p", { class: "what" }, element("strong", {}, found.problem), " ", tag(count, "warn")),
    element("p", { class: "remedy" }, element("strong", {}, "What to do: "),
      withCode(found.remedy || "`relayd probe --resume` tries again; if it fails again, look at the hosts named below.")),
    element("p", { class: "muted" }, tries, found.last_at_s && since(found.last_at_s, ", last "), `. ${common}`),
    element("details", {}, element("summary", {}, found.pairs.length < 20 ? "Pairs" : "The first 20 pairs"), pairsList(found.pairs, 20)));
}

function showStages(part, { stages }) {
  if (!stages.length) {
    replace(part);
    return;
  }
  replace(part, element("h2", {}, "Phases"),
    cardTable("stages", "Probes of each phase, in the order in which they were planned", STAGE_HEADS, stages.map((stage) => ({
      cells: [stageName(stage.stage), figure(stage.done), figure(stage.failed), figure(stage.planned), volume(stage.sent_gb), usd(stage.usd)],
    }))));
}
