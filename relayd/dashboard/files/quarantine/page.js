// Quarantine: samples that do not count, who sent them and why; what an operator decides of
// them.

import {
  UNKNOWN, address, all, asksTwice, button, cardTable, choice, commands, content, count, element, emptyState, figure,
  link, may, more, muted, needsScope, number, pairAddress, pairLink, partsOf, post, replace, restsOn, say, show, since,
  small, when, withCode, words,
} from "../shared/kit.js";
import { metricOf } from "../shared/metrics.js";

const PAGE = 50;
const MOST_CHOSEN = 1000;
const STATES = [["open", "waiting for a decision"], ["accepted", "accepted"], ["rejected", "rejected"]];

const USUAL = { reason: "", state: "open", src: "", dst: "" };
const asked = new URLSearchParams(location.search);
const view = Object.fromEntries(Object.entries(USUAL).map(([name, usual]) => [name, asked.get(name) ?? usual]));
const { disputes, filters, list } = partsOf("disputes", "filters", "list");
replace(content, disputes, filters, list);

let pages = 1;
const chosen = new Set();
const refresh = () => show(async () =>
  draw(await all("v1/quarantine", "samples", { ...view, limit: PAGE }, { most: PAGE * pages }), await may("admin")));

function draw(found, allowed) {
  const { samples, reasons, disputed, snapshot } = found;
  restsOn(snapshot);
  const needs = () => !allowed && needsScope("Accepting or rejecting samples", "admin");
  replace(disputes, disputed.length > 0 && [element("h2", {}, "In dispute"), disputed.map((each) => dispute(each, allowed)), needs()]);
  const total = reasons.reduce((sum, each) => sum + each.samples, 0);
  const ends = [view.src && `from ${view.src}`, view.dst && `to ${view.dst}`].filter(Boolean).join(" ");
  replace(filters, element("h2", {}, "Samples that can't be measurements"),
    ends && element("p", {}, `Only ${ends}: `, link("quarantine", "show all")), element("div", { class: "row" },
      choice("Show", STATES, view.state, (state) => change({ state, reason: "" })),
      (total > 0 || view.reason) && choice("Reason", [["", `all kinds (${figure(total)})`],
        ...reasons.map((each) => [each.reason, `${each.reason} (${figure(each.samples)})`])], view.reason, (reason) => change({ reason }))));
  const of = view.reason ? reasons.find((each) => each.reason === view.reason)?.samples ?? 0 : total;
  replace(list, samples.length ? listOf(found, allowed && view.state !== "accepted", of, view.state !== "accepted" && needs())
    : view.state !== "open" || view.reason || ends ? muted("There are none.") : emptyState("Nothing is in quarantine", element("p", {},
      "Samples that can't be measurements are kept here, apart from what estimates rest on: above a VM type's network card, "
      + "faster than light in fibre, or in the future.")));
}

function change(changes) {
  Object.assign(view, changes);
  pages = 1;
  chosen.clear();
  const said = Object.entries(view).filter(([name, value]) => value !== USUAL[name]);
  history.replaceState(null, "", address("quarantine", Object.fromEntries(said)));
  refresh();
}

function listOf({ samples, next_cursor: next }, mayDecide, total, needs) {
  const [table, bar] = [element("div"), element("div", { class: "deciding" })];
  const older = next && more("Show older ones", async () => {
    pages += 1;
    await refresh();
    list.querySelector(".scroll")?.focus({ preventScroll: true });
  });
  const every = mayDecide && button("Select all shown", () => {
    samples.slice(0, MOST_CHOSEN).forEach((sample) => chosen.add(sample.id));
    fill();
  });
  const fill = () => {
    replace(table, cardTable("quarantine", `The newest first: ${figure(samples.length)} of ${figure(total)}`,
      columns((sample) => mayDecide && box(sample)), samples, { key: ({ id }) => id }));
    if (mayDecide) decide();
  };
  const box = ({ id }) => element("input", { type: "checkbox", checked: chosen.has(id), "aria-label": `Select sample ${id}`, on: { change: (event) => {
    chosen[event.target.checked ? "add" : "delete"](id);
    decide();
  } } });
  // What is chosen has changed, so what a decision would do is asked for again.
  function decide() {
    const because = element("input", { type: "text", maxlength: 500, name: "because" });
    const quarantined = [...chosen];
    const choice = (title, name) => decision(title, { decision: name, quarantined }, () => because.value);
    replace(bar, chosen.size ? element("section", { class: "panel", "aria-label": "Decision" },
      element("p", {}, element("strong", {}, `${figure(chosen.size)} selected`)),
      element("div", { class: "row" }, element("label", {}, "Because", because)),
      element("div", { class: "row" }, choice("Accept …", "accept"), view.state === "open" && choice("Reject …", "reject")))
      : muted("Select samples to accept or reject them; what that would change is shown first."));
  }
  fill();
  return [table, element("div", { class: "row" }, every, older), needs, bar, muted("The command line has the same:"),
    commands(`relayd data samples quarantine${view.state === "open" ? "" : ` --state ${view.state}`} --last 100`)];
}

// A figure that samples contradict: of each source, whether they are to count or not.
function dispute({ src, dst, metric, sources, sentence }, allowed) {
  const of = (source) => (source ? `what ${source} reported` : "your own samples");
  return element("section", { class: "panel", "aria-label": sentence }, element("p", {}, withCode(sentence), " ",
    src !== dst && link(pairAddress(src, dst), "The pair")),
  allowed && sources.map((source) => element("div", { class: "row" }, [["confirm", "Accept"], ["retract", "Reject"]].map(([name, title]) =>
    decision(`${title} ${of(source)} …`, { decision: name, selection: { source, src, dst, metric } })))));
}

const columns = (box) => [
  words("Link", (sample) => [box(sample), " ", sample.src === sample.dst ? sample.src : pairLink(sample.src, sample.dst)]),
  words("What", ({ metric, tool, connections, src_vm: from, dst_vm: to }) => [metricOf(metric).name,
    small([tool, connections && `${connections} connections`, [from, to].filter(Boolean).join(" → ")].filter(Boolean).join(", "))]),
  number("Value", "value", (value, { metric }) => metricOf(metric).shown(value * metricOf(metric).scale)),
  words("Measured", "measured_at_s", when, "time"),
  words("From", (sample) => [sample.token ? `token ${sample.token}` : sample.batch,
    small(since(sample.arrived_at_s, `batch ${sample.batch_id}, `))]),
  words("Reason", ({ reason, decided_by: by, decided_at_s: at_s, decided_because: because, accepted_in: batch }) => [reason,
    by !== null && small(since(at_s, `${view.state} by ${by} `,
      `${because && `: ${because}`}${batch ? `, in batch ${batch}` : ""}`))]),
];

refresh();

// Deciding about samples: first what that would do to estimates, then the decision itself.

// By name: what is said of it once it is done, and what it means.
const DECISIONS = {
  accept: ["accepted", "They count as your own prober's from then on, whatever physics say."],
  reject: ["rejected", "They stay here for good; nothing rests on them."],
  confirm: ["accepted", "They count as your own prober's from then on."],
  retract: ["rejected", "They count no longer; `relayd data samples restore` lets them count again."],
};
const samples = (number) => `${count(number)} ${number === 1 ? "sample" : "samples"}`;

// title: of the button; request: what is decided about which samples; reason(): why, as typed.
function decision(title, request, reason = () => "") {
  let through; // samples that come after these were counted are not decided about
  return asksTwice(title, title.replace(" …", ""), async () => {
    const found = await post("v1/samples/decisions/effects", request).catch(withoutEffects);
    through = found.through;
    return told(request.decision, found);
  }, async () => {
    const answer = await post("v1/samples/decisions", { ...request, through, reason: reason() });
    chosen.clear();
    await refresh();
    say(said(DECISIONS[request.decision][0], answer));
  });
}

// Of a store so large that the effects take too long, the decision is offered without them.
function withoutEffects(problem) {
  if (problem.kind === "timeout" && "samples" in problem.content) return problem.content;
  throw problem;
}

function told(chosen, found) {
  return [element("p", {}, element("strong", {}, `${samples(found.samples)}. `), withCode(DECISIONS[chosen][1])),
    chosen !== "reject" && (found.changed ? changes(found) : element("p", { class: "warn" }, found.detail))];
}

function changes({ total, changed }) {
  if (!total) return element("p", {}, "No estimate would change by over 0.1 %.");
  const value = (title, key) => number(title, key, (of, { figure: name }) => (of === null ? UNKNOWN : metricOf(name).shown(of)));
  const shown = total > changed.length ? `; the first ${changed.length}` : "";
  return cardTable("effects", `What it would change: ${count(total)} ${total === 1 ? "figure" : "figures"}, the largest moved first${shown}`, [
    words("Link or VM", ({ src, dst, address }) => (dst ? [pairLink(src, dst), address === "private" && " (private)"] : src)),
    words("Figure", "figure", (name) => metricOf(name).name), value("Now", "before"), value("Then", "after"),
    number("Change", ({ before, after }) => moved(before, after)),
  ], changed);
}

const moved = (before, after) => (after === null ? "vanishes" : before === null ? "appears" : !before ? "was nothing"
  : `${after > before ? "+" : "−"}${figure(Math.abs(100 * (after / before - 1)))} %`);

const said = (verb, { samples: number, batch_id: batch }) => [`${samples(number)} ${verb}. The next snapshot heeds it`,
  batch ? ["; ", element("code", {}, `relayd data samples retract --batch ${batch}`), " takes them back."] : "."];
