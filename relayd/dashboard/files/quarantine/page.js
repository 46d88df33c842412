// Quarantine: samples that do not count, who sent them and why; what an operator decides of
// them.

import {
  UNKNOWN, asksTwice, cardTable, choice, commands, content, count, element, emptyState, figure,
  get, may, more, needsScope, pairAddress, pairLink, partsOf, post, replace, restsOn, say, show,
  since, small, when, withCode,
} from "../shared/kit.js";
import { metricOf } from "../shared/metrics.js";

const PAGE = 50;
const MOST_CHOSEN = 1000;
const HEADS = [["Link"], ["What", ""], ["Value", "number"], ["Measured"], ["From"], ["Reason"]];
const STATES = [["open", "waiting for a decision"], ["accepted", "accepted"], ["rejected", "rejected"]];

const asked = new URLSearchParams(location.search);
const view = { reason: asked.get("reason") ?? "", state: asked.get("state") ?? "open", src: asked.get("src") ?? "", dst: asked.get("dst") ?? "" };
const { disputes, filters, list } = partsOf("disputes", "filters", "list");
replace(content, disputes, filters, list);

const refresh = () => show(async () => draw(await get("v1/quarantine", { ...view, limit: PAGE }), await may("admin")));

async function decided(verb, answer) {
  await refresh();
  say(said(verb, answer));
}

function draw(found, allowed) {
  const { samples, reasons, disputed, snapshot } = found;
  restsOn(snapshot);
  const needs = () => !allowed && needsScope("Accepting or rejecting samples", "admin");
  replace(disputes, disputed.length > 0 && [element("h2", {}, "In dispute"), disputed.map((each) => dispute(each, allowed)), needs()]);
  const total = reasons.reduce((sum, each) => sum + each.samples, 0);
  const ends = [view.src && `from ${view.src}`, view.dst && `to ${view.dst}`].filter(Boolean).join(" ");
  replace(filters, element("h2", {}, "Samples that can't be measurements"),
    ends && element("p", {}, `Only ${ends}: `, element("a", { href: "quarantine" }, "show all")), element("div", { class: "row" },
      choice("Show", STATES, view.state, (state) => change({ state, reason: "" })),
      (total > 0 || view.reason) && choice("Reason", [["", `all kinds (${figure(total)})`],
        ...reasons.map((each) => [each.reason, `${each.reason} (${figure(each.samples)})`])], view.reason, (reason) => change({ reason }))));
  if (samples.length) {
    replace(list, listOf(found, allowed && view.state !== "accepted", view.reason ? (reasons.find((each) => each.reason === view.reason)?.samples ?? 0) : total,
      view.state !== "accepted" && needs()));
    return;
  }
  replace(list, view.state === "open" && !view.reason && !ends ? emptyState("Nothing is in quarantine",
    element("p", {}, "Samples that can't be measurements are kept here, apart from what estimates rest on: above a VM type's network card, faster than light in fibre, or in the future."))
    : element("p", { class: "muted" }, "There are none."));
}

function change(changes) {
  Object.assign(view, changes);
  const query = new URLSearchParams(Object.entries(view).filter(([, value]) => value && value !== "open")).toString();
  history.replaceState(null, "", `quarantine${query ? `?${query}` : ""}`);
  refresh();
}

function listOf(found, mayDecide, total, needs) {
  const samples = [...found.samples];
  const chosen = new Set();
  let next = found.next_cursor;
  const [table, bar] = [element("div"), element("div", { class: "deciding" })];
  const older = more("Show older ones", () => show(async () => {
    const page = await get("v1/quarantine", { ...view, limit: PAGE, cursor: next });
    samples.push(...page.samples);
    next = page.next_cursor;
    fill();
  }));
  const all = mayDecide && element("button", { type: "button", on: { click: () => {
    samples.slice(0, MOST_CHOSEN).forEach((sample) => chosen.add(sample.id));
    fill();
  } } }, "Select all shown");

  function fill() {
    replace(table, cardTable("quarantine", `The newest first: ${figure(samples.length)} of ${figure(total)}`, HEADS,
      samples.map((sample) => row(sample, mayDecide && box(sample)))));
    older.hidden = !next;
    if (mayDecide) decide();
  }
  const box = ({ id }) => element("input", { type: "checkbox", checked: chosen.has(id), "aria-label": `Select sample ${id}`, on: { change: (event) => {
    chosen[event.target.checked ? "add" : "delete"](id);
    decide();
  } } });
  // What is chosen has changed, so what a decision would do is asked for again.
  function decide() {
    const because = element("input", { type: "text", maxlength: 500, name: "because" });
    const quarantined = [...chosen];
    const button = (title, name, verb) => decision(title, { decision: name, quarantined }, () => because.value, (answer) => decided(verb, answer));
    replace(bar, chosen.size ? element("section", { class: "panel", "aria-label": "Decision" },
      element("p", {}, element("strong", {}, `${figure(chosen.size)} selected`)),
      element("div", { class: "row" }, element("label", {}, "Because", because)),
      element("div", { class: "row" }, button("Accept …", "accept", "accepted"), view.state === "open" && button("Reject …", "reject", "rejected")))
      : element("p", { class: "muted" }, "Select samples to accept or reject them; what that would change is shown first."));
  }
  fill();
  return [table, element("div", { class: "row" }, all, older), needs, bar, element("p", { class: "muted" }, "The command line has the same:"),
    commands(`relayd data samples quarantine${view.state === "open" ? "" : ` --state ${view.state}`} --last 100`)];
}

// A figure that samples contradict: of each source, whether they are to count or not.
function dispute({ src, dst, metric, sources, sentence }, allowed) {
  const of = (source) => (source ? `what ${source} reported` : "your own samples");
  return element("section", { class: "panel", "aria-label": sentence }, element("p", {}, withCode(sentence), " ",
    src !== dst && element("a", { href: pairAddress(src, dst) }, "The pair")),
  allowed && sources.map((source) => element("div", { class: "row" }, [["confirm", "Accept", "accepted"], ["retract", "Reject", "rejected"]]
    .map(([name, title, verb]) => decision(`${title} ${of(source)} …`, { decision: name, selection: { source, src, dst, metric } }, () => "", (answer) => decided(verb, answer))))));
}

function row(sample, box) {
  const types = [sample.src_vm, sample.dst_vm].filter(Boolean).join(" → ");
  const { name, shown, scale } = metricOf(sample.metric);
  const how = [sample.tool, sample.connections && `${sample.connections} connections`, types].filter(Boolean).join(", ");
  return {
    data: { key: sample.id },
    cells: [
      [box, " ", sample.src === sample.dst ? sample.src : pairLink(sample.src, sample.dst)],
      [name, small(how)],
      shown(sample.value * scale),
      when(sample.measured_at_s),
      [sample.token ? `token ${sample.token}` : sample.batch, small(since(sample.arrived_at_s, `batch ${sample.batch_id}, `))],
      [sample.reason, sample.decided_by !== null && small(
        since(sample.decided_at_s, `${view.state} by ${sample.decided_by} `, `${sample.decided_because && `: ${sample.decided_because}`}${sample.accepted_in ? `, in batch ${sample.accepted_in}` : ""}`))],
    ],
  };
}

refresh();

// Deciding about samples: first what that would do to estimates, then the decision itself.

const MEANINGS = {
  accept: "They count as your own prober's from then on, whatever physics say.",
  reject: "They stay here for good; nothing rests on them.",
  confirm: "They count as your own prober's from then on.",
  retract: "They count no longer; `relayd data samples restore` lets them count again.",
};
const samples = (number) => `${count(number)} ${number === 1 ? "sample" : "samples"}`;

// title: of the button; request: what is decided about which samples; reason(): why, as typed;
// decided(answer): called when it is done.
function decision(title, request, reason, decided) {
  let through; // samples that come after these were counted are not decided about
  return asksTwice(title, title.replace(" …", ""), async () => {
    const found = await post("v1/samples/decisions/effects", request).catch(withoutEffects);
    through = found.through;
    return told(request.decision, found);
  }, async () => decided(await post("v1/samples/decisions", { ...request, through, reason: reason() })));
}

// Of a store so large that the effects take too long, the decision is offered without them.
function withoutEffects(problem) {
  if (problem.kind !== "timeout" || !("samples" in problem.content)) throw problem;
  return problem.content;
}

function told(chosen, found) {
  return [element("p", {}, element("strong", {}, `${samples(found.samples)}. `), withCode(MEANINGS[chosen])),
    chosen !== "reject" && (found.changed ? changes(found) : element("p", { class: "warn" }, found.detail))];
}

function changes({ total, changed }) {
  if (!total) return element("p", {}, "No estimate would change by over 0.1 %.");
  const rows = changed.map(({ src, dst, figure: name, before, after, address }) => {
    const { name: words, shown } = metricOf(name);
    const value = (of) => (of === null ? UNKNOWN : shown(of));
    return { cells: [dst ? [pairLink(src, dst), address === "private" && " (private)"] : src, words, value(before), value(after), moved(before, after)] };
  });
  const shown = total > rows.length ? `; the first ${rows.length}` : "";
  return cardTable("effects", `What it would change: ${count(total)} ${total === 1 ? "figure" : "figures"}, the largest moved first${shown}`,
    [["Link or VM"], ["Figure"], ["Now", "number"], ["Then", "number"], ["Change", "number"]], rows);
}

function moved(before, after) {
  if (after === null) return "vanishes";
  if (before === null) return "appears";
  return before ? `${after > before ? "+" : "−"}${figure(Math.abs(100 * (after / before - 1)))} %` : "was nothing";
}

const said = (verb, { samples: number, batch_id: batch }) => [`${samples(number)} ${verb}. The next snapshot heeds it`,
  batch ? ["; ", element("code", {}, `relayd data samples retract --batch ${batch}`), " takes them back."] : "."];
