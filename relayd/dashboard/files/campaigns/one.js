// One campaign: how far it is, what it spends, what failed and what to do about it.

import { may, needsScope } from "../shared/access.js";
import { get, post } from "../shared/api.js";
import { asksTwice } from "../shared/asking.js";
import { keepFresh, soon, stateLine } from "../shared/live.js";
import { barred, box, cardTable, partsOf, redraw, since, spending, tag, withCode } from "../shared/parts.js";
import { resumeForm } from "./start.js";
import { budgetOf, byWatcher, countOf, phasesOf, stageName, startedBy, stateOf } from "./state.js";
import { element, facts, replace } from "../shared/dom.js";
import { duration, figure, UNKNOWN, usd, volume, when } from "../shared/format.js";
import { content, fail, restsOn, show } from "../shared/shell.js";

const STAGE_HEADS = [["Phase"], ...["Done", "Failed", "Left", "Moved", "Egress"].map((title) => [title, "number"])];
const ENDED = new Set(["done", "partly done", "interrupted", "failed"]);
const ENDINGS = {
  interrupted: "It was interrupted. What was measured is kept; starting it again goes on from there.",
  "partly done": "It ended with something left to do: `relayd probe --resume` tries again.",
  started: "It has begun.",
};

export function onePage(id) {
  const line = stateLine();
  const parts = partsOf("head", "now", "stop", "resume", "failures", "stages");
  const { head, ...others } = parts;
  replace(content, element("p", {}, element("a", { href: "campaigns" }, "All campaigns")), head, line, Object.values(others));
  document.title = `Campaign ${id} - relayd`;
  let newest = null;
  async function refresh() {
    await show(async () => {
      newest = await get(`v1/campaigns/${encodeURIComponent(id)}`);
      const { snapshot, campaign, progress, failures, stages } = newest;
      restsOn(snapshot);
      replace(head, element("h2", {}, `Campaign ${campaign.id} `, tag(...stateOf(campaign, progress))));
      replace(parts.now, now(newest));
      redraw(parts.failures, failures, () => failures.length > 0 && [element("h2", {}, "What failed, and what to do"),
        element("ul", { class: "failures" }, failures.map(failure))]);
      redraw(parts.stages, stages, () => stages.length > 0 && [element("h2", {}, "Phases"), stageTable(stages)]);
      const isStoppable = campaign.may_be_stopped;
      const isAllowed = isStoppable && (await may("probe"));
      redraw(parts.stop, [isStoppable, isAllowed], () => (isAllowed ? stopping(campaign) : isStoppable && needsScope("Stopping a campaign", "probe")));
      const isLeft = await mayGoOn(campaign);
      redraw(parts.resume, [isLeft, isLeft && campaign.usd], () => isLeft && resumeForm(campaign));
    });
  }
  keepFresh(line, refresh, ({ kind, data }, again) => {
    if (kind !== "campaign" || data.subject !== String(id)) return;
    // What the event says is shown at once; stages and failures are asked for.
    if (newest) {
      newest.progress = { ...newest.progress, ...data.detail, at_s: data.at_s };
      try {
        replace(parts.now, now(newest));
      } catch (error) {
        fail(error);
      }
    }
    if (data.detail.status === "running") again();
    else soon(again);
  });
}

const stopping = (campaign) => asksTwice("Stop this campaign", "Stop it now",
  "Probes under way end on all hosts within seconds. What was measured is kept; what they may have sent counts as spent. It can go on later.",
  async (done) => {
    await post(`v1/campaigns/${campaign.id}/stop`, {});
    done("Stopping: its probes are being ended.");
  });

// Only the newest campaign can go on, and only where its kind is started by request.
async function mayGoOn(campaign) {
  if (campaign.finished_at_s !== null || campaign.is_running || byWatcher(campaign)) return false;
  const [fleet, newest] = await Promise.all([get("v1/fleet"), get("v1/campaigns", { limit: 1 })]);
  return fleet.may_start_campaigns && newest.campaigns[0].id === campaign.id;
}

// ---- how far it is, and what it spends ----

// An event is newer than what was asked for before it.
function now({ campaign, progress }) {
  const dollars = Math.max(campaign.usd, progress?.usd ?? 0);
  const budget = budgetOf(campaign);
  const running = campaign.is_running && progress?.status === "running";
  return element("div", { class: "grid" },
    box("Progress", running ? current(progress) : stopped(campaign, progress), overall(campaign)),
    box("Spending", facts([
      ["Egress", spending(dollars, budget, "Part of the budget that is spent")],
      ["Still allowed", budget ? usd(Math.max(0, budget - dollars)) : UNKNOWN],
      ["Moved", volume(Math.max(campaign.sent_gb, progress?.sent_gb ?? 0))],
    ])),
    box("What was asked", asked(campaign)));
}

function current({ stage, round, rounds, done, failed, total, left_s: left }) {
  return facts([
    ["Phase", stageName(stage)],
    ["Round", rounds ? `${round} of ${rounds}` : UNKNOWN],
    ["Probes of it", barred((done + failed) / total, "Probes of this phase that have ended",
      `${figure(done + failed)} of ${figure(total)}${failed ? `, ${failed} failed` : ""}`)],
    ["Left", left === undefined ? UNKNOWN : `about ${duration(left)} of this phase`],
  ]);
}

function stopped(campaign, progress) {
  if (campaign.finished_at_s !== null) return null;
  if (progress?.status === "failed" && !campaign.is_running) return element("p", { class: "problem" }, `It ended early: ${progress.problem}`);
  const text = campaign.is_running && ENDED.has(progress?.status) ? "It is ending."
    : campaign.is_running ? "It is being prepared: hosts are logged in to, links are chosen."
    : byWatcher(campaign) ? "Something is left to do. The watcher goes on with it when the hour and the daily budget allow."
    : ENDINGS[progress?.status] ?? "It is not finished and does not run here: `relayd probe --resume` goes on with it.";
  return element("p", {}, withCode(text));
}

function overall({ probes, started_at_s: started, finished_at_s: finished }) {
  const all = countOf(probes);
  return facts([
    ["In all", barred(all ? probes.done / all : 0, "Probes of the campaign that are done", `${figure(probes.done)} of ${figure(all)} done`)],
    ["Failed", element("span", { class: probes.failed ? "warn" : null }, figure(probes.failed))],
    ["Started", element("span", {}, since(started, `${when(started)} (`, ")"))],
    ...(finished === null ? [] : [["Ended", `${when(finished)}, after ${duration(finished - started)}`]]),
  ]);
}

function asked(campaign) {
  const { pairs = [], thorough, connections = UNKNOWN } = campaign.options.wish ?? {};
  return facts([
    ["By", startedBy(campaign)],
    ["Measures", phasesOf(campaign)],
    ["Pairs", pairs.length ? pairsList(pairs, 6) : thorough ? "all" : "those that matter most"],
    ["Connections", `at most ${connections} a probe`],
    ["Tool", campaign.options.method?.tool ?? campaign.options.tool ?? UNKNOWN],
  ]);
}

const pairsList = (pairs, most) => element("ul", { class: "pairs" }, pairs.slice(0, most).map(([src, dst]) => element("li", {}, `${src} → ${dst}`)),
  pairs.length > most && element("li", { class: "muted" }, `and ${pairs.length - most} more`));

// ---- what failed, and phases ----

const number = (count, name, plural) => `${count} ${count === 1 ? name : plural}`;

function failure({ problem, probes, stages, hosts, attempts, remedy, last_at_s: last, pairs }) {
  return element("li", { class: "panel", dataset: { key: problem } },
    element("p", { class: "what" }, element("strong", {}, problem), " ", tag(number(probes, "probe", "probes"), "warn")),
    element("p", { class: "remedy" }, element("strong", {}, "What to do: "),
      withCode(remedy || "`relayd probe --resume` tries again; if it fails again, look at the hosts named below.")),
    element("p", { class: "muted" }, `${stages.map(stageName).join(", ")}; ${number(attempts, "try", "tries")}`, last && since(last, ", last "), ". ",
      hosts.length > 0 && `Part of all of them: ${hosts.join(", ")}. `),
    element("details", {}, element("summary", {}, pairs.length < 20 ? "Pairs" : "The first 20 pairs"), pairsList(pairs, 20)));
}

const stageTable = (stages) => cardTable("stages", "Probes of each phase, in the order in which they were planned", STAGE_HEADS,
  stages.map(({ stage, done, failed, planned, sent_gb: sent, usd: spent }) => ({
    cells: [stageName(stage), figure(done), figure(failed), figure(planned), volume(sent), usd(spent)],
  })));
