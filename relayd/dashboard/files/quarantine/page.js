// Quarantine: samples that do not count, who sent them and why; what an operator decides of them.

import { may, needsScope } from "../shared/access.js";
import { get } from "../shared/api.js";
import { metricOf } from "../pair/metrics.js";
import { element, replace } from "../shared/dom.js";
import { figure, when } from "../shared/format.js";
import { pairAddress, pairLink } from "../shared/pairs.js";
import { cardTable, choice, commands, more, partsOf, since, small, withCode } from "../shared/parts.js";
import { content, emptyState, restsOn, say, show } from "../shared/shell.js";
import { decision, said } from "./decisions.js";

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
