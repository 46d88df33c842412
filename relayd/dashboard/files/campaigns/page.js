// Campaigns: all of them, what the watcher spends and a way to start one; or the one that the address names.

import {
  UNKNOWN, all, asksTwice, barred, box, cardTable, commands, content, duration, element, emptyState, facts, fail, figure,
  get, link, livePage, may, more, muted, needsScope, number, oldPrices, partsOf, percent, post, redraw, replace, restsOn,
  show, since, small, soon, spending, tag, toCheck, usd, volume, watchFacts, when, withCode, words,
} from "../shared/kit.js";

const name = new URLSearchParams(location.search).get("id");

// ---- a campaign in words ----

const PHASES = [
  ["rtt", "Round trips", "a few pings a pair; next to nothing"],
  ["per-flow", "Single flows", "one TCP connection a pair"],
  ["caps", "VM caps", "one VM to and from many at once"],
  ["aggregate", "Aggregates", "many TCP connections a pair"],
];
const NAMES = new Map(PHASES.map(([phase, title]) => [phase, title]));

function stageName(stage) {
  const [phase, number] = (stage ?? "").split(" ");
  return `${NAMES.get(phase) ?? stage ?? ""}${number ? `, choice ${number}` : ""}`;
}

function phasesOf({ options }) {
  const { phases = [] } = options.wish ?? {};
  return phases.length === PHASES.length ? "all" : phases.map((phase) => NAMES.get(phase) ?? phase).join(", ");
}

const byWatcher = (campaign) => campaign.options.started_by === "watch";
const startedBy = (campaign) => (byWatcher(campaign) ? "the watcher" : "request");
const budgetOf = (campaign) => campaign.options.budget_usd ?? null;
const countOf = ({ planned, done, failed }) => planned + done + failed;

function stateOf(campaign, progress = null) {
  if (campaign.is_running) return tag("running", "good");
  if (campaign.finished_at_s !== null) return campaign.probes.failed ? tag("ended, some failed", "warn") : tag("done", "good");
  const [text, kind = "warn"] = { failed: ["failed", "bad"], running: ["running or interrupted"], started: ["running or interrupted"],
    interrupted: ["interrupted"] }[progress?.status] ?? ["unfinished"];
  return tag(text, kind);
}

// Asks again at once while a campaign runs, and once more when what an event tells of has been taken up.
const heardOf = (data, again) => (data.detail.status === "running" ? again() : soon(again));

// ---- all of them ----

const PAGE = 25;

function listPage() {
  const parts = partsOf("watch", "start", "list");
  let pages = 1;
  async function refresh() {
    const [{ campaigns, next_cursor: next, snapshot }, fleet, { watch }] = await Promise.all([
      all("v1/campaigns", "campaigns", { limit: PAGE }, { most: PAGE * pages }), get("v1/fleet"), get("v1/watch")]);
    restsOn(snapshot);
    redraw(parts.watch, watch, () => watch
      && element("section", { class: "panel" }, element("h2", {}, "The watcher"), watchFacts(watch)));
    // The form is made once: it must not lose what somebody is typing.
    redraw(parts.start, [fleet.why_not], () => (fleet.may_start_campaigns ? startForm(fleet)
      : fleet.configured && muted(`No campaign can be started from here. ${fleet.why_not}`)));
    redraw(parts.list, [campaigns, next, fleet.configured], () => (!campaigns.length ? nothingYet(fleet)
      : [element("h2", {}, "All campaigns"), cardTable("campaigns", "Campaigns, the newest first", COLUMNS, campaigns, { key: ({ id }) => id }),
        next && more("Show older ones", () => {
          pages += 1;
          renew();
        })]));
  }
  const renew = livePage(content, Object.values(parts), refresh, ({ kind, data }, again) => {
    if (kind === "campaign" || kind === "snapshot") heardOf(data, again);
  });
}

const COLUMNS = [
  words("Campaign", "id", (id) => link(`campaigns?id=${id}`, `Campaign ${id}`)), words("State", (each) => stateOf(each)),
  words("Measures", phasesOf, (text, each) => [text, small(` by ${startedBy(each)}`)]),
  words("Probes done", "probes", (probes, { id }) => barred(probes.done / countOf(probes),
    `Probes of campaign ${id} that are done`, `${figure(probes.done)} of ${figure(countOf(probes))}`)),
  number("Failed", "probes.failed", (failed) => element("span", { class: failed ? "warn" : null }, figure(failed))),
  number("Moved", "sent_gb", volume),
  words("Spent", "usd", (spent, each) =>
    spending(spent, budgetOf(each), `Part of the budget of campaign ${each.id} that is spent`)),
  words("Started", "started_at_s", (at_s) => [since(at_s), small(when(at_s))], "time"),
  number("Took", ({ started_at_s: from, finished_at_s: to }) => (to === null ? null : to - from), duration),
];

const nothingYet = ({ configured, may_start_campaigns: mayStart }) => (configured
  ? emptyState("No campaign has run yet", element("p", {},
    "A campaign measures round trips, flows, caps and aggregates among the hosts of the fleet, within a budget. ",
    mayStart ? "Start one above, or from a shell:" : "The watcher starts one when it is due."),
  commands("relayd probe --fleet fleet.toml --budget 5usd"))
  : emptyState("No campaign has run yet, and this service has no fleet", element("p", {},
    "A campaign measures among VMs of your own, over SSH and within a budget. Name them in a fleet file, then measure from "
    + "a shell, or start the service with them:"),
  commands("relayd measure fleet check --fleet fleet.toml --trust-new\nrelayd probe --fleet fleet.toml --dry-run\n"
    + "relayd serve --fleet fleet.toml"),
  element("p", {}, "Measurements that you have already come in without one: ", element("code", {}, "relayd import csv measured.csv"), ".")));

// ---- one: how far it is, what it spends, what failed and what to do about it ----

const ENDED = ["done", "partly done", "interrupted", "failed"];
const ENDINGS = {
  interrupted: "It was interrupted. What was measured is kept; starting it again goes on from there.",
  "partly done": "It ended with something left to do: `relayd probe --resume` tries again.",
  started: "It has begun.",
};

function onePage(id) {
  const parts = partsOf("head", "now", "stop", "resume", "failures", "stages");
  document.title = `Campaign ${id} - relayd`;
  let newest = null;
  async function refresh() {
    newest = await get(`v1/campaigns/${encodeURIComponent(id)}`);
    const { snapshot, campaign, progress, failures, stages } = newest;
    restsOn(snapshot);
    replace(parts.head, element("h2", {}, `Campaign ${campaign.id} `, stateOf(campaign, progress)));
    replace(parts.now, now(newest));
    redraw(parts.failures, failures, () => failures.length > 0 && [element("h2", {}, "What failed, and what to do"),
      element("ul", { class: "failures" }, failures.map(failure))]);
    redraw(parts.stages, stages, () => stages.length > 0 && [element("h2", {}, "Phases"), stageTable(stages)]);
    const isStoppable = campaign.may_be_stopped;
    const isAllowed = isStoppable && await may("probe");
    redraw(parts.stop, [isStoppable, isAllowed], () => (isAllowed ? stopping(campaign)
      : isStoppable && needsScope("Stopping a campaign", "probe")));
    const isLeft = await mayGoOn(campaign);
    redraw(parts.resume, [isLeft, isLeft && campaign.usd], () => isLeft && resumeForm(campaign));
  }
  const back = element("p", {}, link("campaigns", "All campaigns"));
  livePage(content, [back, ...Object.values(parts)], refresh, ({ kind, data }, again) => {
    if (kind !== "campaign" || data.subject !== String(id)) return;
    // What the event says is shown at once; stages and failures are asked for.
    if (newest) {
      newest.progress = { ...newest.progress, ...data.detail, at_s: data.at_s };
      replace(parts.now, now(newest));
    }
    heardOf(data, again);
  });
}

const stopping = (campaign) => asksTwice("Stop this campaign", "Stop it now", "Probes under way end on all hosts within "
  + "seconds. What was measured is kept; what they may have sent counts as spent. It can go on later.", async (done) => {
  await post(`v1/campaigns/${campaign.id}/stop`, {});
  done("Stopping: its probes are being ended.");
});

// Only the newest campaign can go on, and only where its kind is started by request.
async function mayGoOn(campaign) {
  if (campaign.finished_at_s !== null || campaign.is_running || byWatcher(campaign)) return false;
  const [fleet, newest] = await Promise.all([get("v1/fleet"), get("v1/campaigns", { limit: 1 })]);
  return fleet.may_start_campaigns && newest.campaigns[0].id === campaign.id;
}

// An event is newer than what was asked for before it.
function now({ campaign, progress }) {
  const { probes, started_at_s: started, finished_at_s: finished } = campaign;
  const dollars = Math.max(campaign.usd, progress?.usd ?? 0);
  const budget = budgetOf(campaign);
  const isRunning = campaign.is_running && progress?.status === "running";
  const of = countOf(probes);
  return element("div", { class: "grid" },
    box("Progress", isRunning ? current(progress) : stopped(campaign, progress), facts([
      ["In all", barred(of ? probes.done / of : 0, "Probes of the campaign that are done", `${figure(probes.done)} of ${figure(of)} done`)],
      ["Failed", element("span", { class: probes.failed ? "warn" : null }, figure(probes.failed))],
      ["Started", element("span", {}, since(started, `${when(started)} (`, ")"))],
      finished !== null && ["Ended", `${when(finished)}, after ${duration(finished - started)}`],
    ])),
    box("Spending", facts([
      ["Egress", spending(dollars, budget, "Part of the budget that is spent")],
      ["Still allowed", budget ? usd(Math.max(0, budget - dollars)) : UNKNOWN],
      ["Moved", volume(Math.max(campaign.sent_gb, progress?.sent_gb ?? 0))],
    ])),
    box("What was asked", asked(campaign)));
}

const current = ({ stage, round, rounds, done, failed, total, left_s: left }) => facts([
  ["Phase", stageName(stage)], ["Round", rounds ? `${round} of ${rounds}` : UNKNOWN],
  ["Probes of it", barred((done + failed) / total, "Probes of this phase that have ended",
    `${figure(done + failed)} of ${figure(total)}${failed ? `, ${failed} failed` : ""}`)],
  ["Left", left === undefined ? UNKNOWN : `about ${duration(left)} of this phase`],
]);

function stopped(campaign, progress) {
  if (campaign.finished_at_s !== null) return null;
  const { status, problem } = progress ?? {};
  if (status === "failed" && !campaign.is_running) return element("p", { class: "problem" }, `It ended early: ${problem}`);
  const text = campaign.is_running && ENDED.includes(status) ? "It is ending."
    : campaign.is_running ? "It is being prepared: hosts are logged in to, links are chosen."
    : byWatcher(campaign) ? "Something is left to do. The watcher goes on with it when the hour and the daily budget allow."
    : ENDINGS[status] ?? "It is not finished and does not run here: `relayd probe --resume` goes on with it.";
  return element("p", {}, withCode(text));
}

function asked(campaign) {
  const { pairs = [], thorough, connections = UNKNOWN } = campaign.options.wish ?? {};
  return facts([
    ["By", startedBy(campaign)], ["Measures", phasesOf(campaign)],
    ["Pairs", pairs.length ? pairsList(pairs, 6) : thorough ? "all" : "those that matter most"],
    ["Connections", `at most ${connections} a probe`],
    ["Tool", campaign.options.method?.tool ?? campaign.options.tool ?? UNKNOWN],
  ]);
}

const pairsList = (pairs, most) => element("ul", { class: "pairs" },
  pairs.slice(0, most).map(([src, dst]) => element("li", {}, `${src} → ${dst}`)),
  pairs.length > most && element("li", { class: "muted" }, `and ${pairs.length - most} more`));

function failure({ problem, probes, stages, hosts, attempts, remedy, last_at_s: last, pairs }) {
  const rest = "`relayd probe --resume` tries again; if it fails again, look at the hosts named below.";
  return element("li", { class: "panel", dataset: { key: problem } },
    element("p", { class: "what" }, element("strong", {}, problem), " ", tag(`${probes} ${probes === 1 ? "probe" : "probes"}`, "warn")),
    element("p", { class: "remedy" }, element("strong", {}, "What to do: "), withCode(remedy || rest)),
    muted(`${stages.map(stageName).join(", ")}; ${attempts} ${attempts === 1 ? "try" : "tries"}`, last && since(last, ", last "),
      ". ", hosts.length > 0 && `Part of all of them: ${hosts.join(", ")}. `),
    element("details", {}, element("summary", {}, pairs.length < 20 ? "Pairs" : "The first 20 pairs"), pairsList(pairs, 20)));
}

const stageTable = (stages) => cardTable("stages", "Probes of each phase, in the order in which they were planned", [
  words("Phase", "stage", stageName), number("Done", "done", figure), number("Failed", "failed", figure),
  number("Left", "planned", figure), number("Moved", "sent_gb", volume), number("Egress", "usd", usd),
], stages);

// ---- starting one: a dry run says what it costs, then the budget is typed once more as consent ----

// A time as people write it; without a unit it is in minutes. NaN where it is none.
const MINUTES = { s: 1 / 60, min: 1, "": 1, h: 60, d: 1440 };
function minutesOf(text) {
  const [, amount, unit = ""] = /^\s*(\d+\.?\d*|\.\d+)\s*(s|min|h|d)?\s*$/.exec(text) ?? [];
  return Number(amount) * MINUTES[unit];
}

const input = (name, attributes) => element("input", { type: "number", class: "short", name, ...attributes });
const budgetField = (value) => input("budget", { min: "0.01", max: "1000000", step: "any", required: true, value });

function startForm(fleet) {
  const result = element("div", { class: "forecast", "aria-live": "polite" });
  function request(data) {
    const said = (name) => data.get(name).trim();
    const [phases, pairs] = [data.getAll("phase"), said("pairs").split("\n").map((text) => text.trim()).filter(Boolean)];
    return {
      budget_usd: Number(said("budget")), thorough: data.has("thorough"), connections: Number(said("connections")),
      ...(phases.length < PHASES.length && { phases }), ...(pairs.length && { pairs }),
      ...(said("after") && { max_minutes: minutesOf(said("after")) }),
    };
  }
  async function dryRun(event) {
    event.preventDefault();
    const data = new FormData(event.target);
    const spec = request(data);
    const wrong = spec.phases?.length === 0 ? "Choose at least one thing to measure."
      : Number.isNaN(spec.max_minutes) ? `End after: "${data.get("after")}" is no time. Write 90min, 2h or 1d.` : "";
    if (wrong) return void fail(new Error(wrong));
    replace(result, muted("Asking what it would take …"));
    const found = await show(() => Promise.all([post("v1/campaigns/forecast", spec), oldPrices()]));
    replace(result, found && forecast(...found, spec));
  }
  const labelled = (...said) => element("label", {}, said);
  const checked = (attributes) => element("input", { type: "checkbox", ...attributes });
  return element("details", { class: "panel start" }, element("summary", {}, "Start a campaign"),
    muted(`Measures among the ${fleet.hosts.length} hosts of the fleet. Egress costs real money: a dry run says how much at most.`),
    element("form", { on: { submit: dryRun, input: () => replace(result) } },
      element("div", { class: "row" }, labelled("Budget", budgetField("5"), "USD"),
        labelled("End after", input("after", { type: "text", autocomplete: "off", placeholder: "none" }), "minutes, or 2h"),
        labelled("At most", input("connections", { min: "1", max: "128", value: "64" }), "connections a probe"),
        labelled(checked({ name: "thorough" }), "All pairs, not only those that matter")),
      element("fieldset", {}, element("legend", {}, "What to measure"), element("div", { class: "row" },
        PHASES.map(([value, text, title]) => element("label", { title }, checked({ name: "phase", value, checked: true }), text)))),
      element("details", {}, element("summary", {}, "Only some pairs"), labelled("One a line, SOURCE>DESTINATION", element("textarea",
        { rows: "2", cols: "36", name: "pairs", spellcheck: "false", placeholder: "aws:us-east-1>gcp:us-east1" }))),
      element("div", { class: "row" }, element("button", { type: "submit", class: "main" }, "Dry run: what would it cost?"))),
    result);
}

function forecast({ campaign, all_pairs: everything, regret }, prices, { budget_usd: budget, ...spec }) {
  const rowsOf = (found) => Object.entries(found).map(([name, part]) => ({ name, ...part }));
  const regions = rowsOf(campaign.regions).sort((a, b) => b.egress_usd - a.egress_usd);
  const over = campaign.egress_usd > budget;
  const egress = number("Egress", "egress_usd", usd);
  return [
    element("h3", {}, "Dry run: what it would take at most"),
    facts([
      ["Egress", [element("strong", {}, usd(campaign.egress_usd)),
        over ? " – more than the budget: it ends when that is used up" : ` of a budget of ${usd(budget)}`, toCheck(prices)]],
      ["Volume", volume(campaign.volume_gb)], ["Time", `${duration(campaign.duration_s)} in ${figure(campaign.rounds)} rounds`],
      ["Expected regret", `${percent(100 * regret.before)} of throughput lost for lack of measurements, ${percent(100 * regret.after)} after all of it`],
      regret.unknown_regions.length > 0 && ["Regret is not of", `${regret.unknown_regions.join(", ")}: nothing is known of them yet`],
      ["All pairs would take", `${usd(everything.egress_usd)}, ${volume(everything.volume_gb)}, ${duration(everything.duration_s)}`],
    ]),
    element("div", { class: "grid" },
      cardTable("cost", "By region", [words("Region", "name"), number("Sends", "sent_gb", volume),
        number("Receives", "received_gb", volume), egress], regions),
      cardTable("cost", "By phase", [words("Phase", "name", stageName), number("Rounds", "rounds", figure),
        number("Volume", "volume_gb", volume), egress], rowsOf(campaign.phases))),
    consent({ budget_usd: budget, ...spec }),
  ];
}

function resumeForm(campaign) {
  const budget = budgetField(budgetOf(campaign) ?? "");
  const place = element("div");
  const spent = `${usd(campaign.usd)} is spent already`;
  const put = () => {
    const spec = { budget_usd: Number(budget.value), resume: true };
    replace(place, spec.budget_usd > campaign.usd ? consent(spec, `of which ${spent}`)
      : element("p", { class: "warn" }, `${spent}: it needs a larger budget.`));
  };
  budget.addEventListener("input", put);
  put();
  return element("details", { class: "panel start" }, element("summary", {}, "Go on with it"),
    muted("What failed is tried again, and what is left is measured."), element("label", {}, "Budget in all", budget, "USD"), place);
}

// The budget is typed again: a click alone spends nothing.
function consent(spec, note = "") {
  const agrees = () => typed.value.trim() !== "" && Number(typed.value.trim().replace(/^\$/, "")) === spec.budget_usd;
  const typed = input("consent", { type: "text", inputmode: "decimal", autocomplete: "off", on: { input: () => {
    start.disabled = !agrees();
    start.classList.toggle("main", agrees());
  } } });
  const start = element("button", { type: "submit", disabled: true }, "Start and spend");
  async function begin(event) {
    event.preventDefault();
    if (!agrees() || start.disabled) return;
    start.disabled = true;
    const begun = await show(() => post("v1/campaigns", spec));
    if (begun) location.assign(`campaigns?id=${begun.campaign.id}`);
    else start.disabled = false;
  }
  return element("form", { class: "consent", on: { submit: begin } },
    element("p", {}, "This sends traffic that your cloud bills you for, up to the budget of ",
      element("strong", {}, usd(spec.budget_usd)), note && `, ${note}`, "."),
    element("div", { class: "row" }, element("label", {}, `Type ${spec.budget_usd} to agree`, typed, "USD"), start));
}

if (name) onePage(name);
else listPage();
