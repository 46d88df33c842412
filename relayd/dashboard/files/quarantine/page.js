// Quarantine: samples that do not count, who sent them and why; what an operator decides of them.

import { may, needsScope } from "../shared/access.js";
import { get } from "../shared/api.js";
import { metricOf } from "../pair/metrics.js";
import { element, replace } from "../shared/dom.js";
import { figure, when } from "../shared/format.js";
import { pairAddress, pairLink } from "../shared/pairs.js";
import { cardTable, commands, since, withCode } from "../shared/parts.js";
import { content, emptyState, restsOn, say, show } from "../shared/shell.js";
import { decision, said } from "./decisions.js";

const PAGE = 50;
const MOST_CHOSEN = 1000;
const HEADS = [["Link"], ["What", ""], ["Value", "number"], ["Measured"], ["From"], ["Reason"]];
const STATES = [["open", "waiting for a decision"], ["accepted", "accepted"], ["rejected", "rejected"]];

const asked = new URLSearchParams(location.search);
const view = { reason: asked.get("reason") ?? "", state: asked.get("state") ?? "open", src: asked.get("src") ?? "", dst: asked.get("dst") ?? "" };
const [filters, disputes, list] = ["filters", "disputes", "list"].map((name) => element("div", { class: `part ${name}` }));
replace(content, disputes, filters, list);

const refresh = () => show(async () => draw(await get("v1/quarantine", { ...view, limit: PAGE }), await may("admin")));

async function decided(verb, answer) {
  await refresh();
  say(said(verb, answer));
}

function draw(found, allowed) {
  restsOn(found.snapshot);
  replace(disputes, found.disputed.length ? [element("h2", {}, "In dispute"), found.disputed.map((each) => dispute(each, allowed)),
    !allowed && needsScope("Accepting or rejecting samples", "admin")] : null);
  const total = found.reasons.reduce((sum, each) => sum + each.samples, 0);
  const ends = [view.src && ["from ", view.src], view.dst && ["to ", view.dst]].filter(Boolean);
  replace(filters, element("h2", {}, "Samples that can't be measurements"),
    ends.length > 0 && element("p", {}, "Only ", ends.map((each, at) => [at ? " " : "", each]), ": ", element("a", { href: "quarantine" }, "show all")), element("div", { class: "row" },
    choice("Show", "state", STATES.map(([value, text]) => [value, text])),
    (total > 0 || view.reason) && choice("Reason", "reason", [["", `all kinds (${figure(total)})`],
      ...found.reasons.map((each) => [each.reason, `${each.reason} (${figure(each.samples)})`])])));
  if (!found.samples.length) {
    replace(list, view.state === "open" && !view.reason && !ends.length ? emptyState("Nothing is in quarantine",
      element("p", {}, "Samples that can't be measurements are kept here, apart from what estimates rest on: above a VM type's network card, faster than light in fibre, or in the future."))
      : element("p", { class: "muted" }, "There are none."));
    return;
  }
  showList(found, allowed, view.reason ? (found.reasons.find((each) => each.reason === view.reason)?.samples ?? 0) : total);
}

function showList(found, allowed, total) {
  const samples = [...found.samples];
  const chosen = new Set();
  const mayDecide = allowed && view.state !== "accepted";
  let next = found.next_cursor;
  const [table, bar] = [element("div"), element("div", { class: "deciding" })];
  const more = element("button", { type: "button", on: { click: () => show(older) } }, "Show older ones");
  replace(list, table, element("div", { class: "row" }, mayDecide && element("button", { type: "button", on: { click: () => {
    samples.slice(0, MOST_CHOSEN).forEach((sample) => chosen.add(sample.id));
    fill();
  } } }, "Select all shown"), more), mayDecide ? bar : view.state !== "accepted" && needsScope("Accepting or rejecting samples", "admin"),
  element("p", { class: "muted" }, "The command line has the same:"),
  commands(view.state === "open" ? "relayd data samples quarantine --last 100" : `relayd data samples quarantine --state ${view.state} --last 100`));
  fill();

  function fill() {
    replace(table, cardTable("quarantine", `The newest first: ${figure(samples.length)} of ${figure(total)}`, HEADS,
      samples.map((sample) => row(sample, mayDecide && box(sample)))));
    more.hidden = !next;
    decide();
  }
  function box(sample) {
    return element("input", { type: "checkbox", checked: chosen.has(sample.id), "aria-label": `Select sample ${sample.id}`, on: { change: (event) => {
      if (event.target.checked) chosen.add(sample.id);
      else chosen.delete(sample.id);
      decide();
    } } });
  }
  // What is chosen has changed, so what a decision would do is asked for anew.
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
  async function older() {
    const page = await get("v1/quarantine", { ...view, limit: PAGE, cursor: next });
    samples.push(...page.samples);
    next = page.next_cursor;
    fill();
  }
}

// A figure that samples contradict: of each source, whether they are to count or not.
function dispute({ src, dst, metric, sources, sentence }, allowed) {
  const of = (source) => (source ? `what ${source} reported` : "your own samples");
  return element("section", { class: "panel", "aria-label": sentence }, element("p", {}, withCode(sentence), " ",
    src !== dst && element("a", { href: pairAddress(src, dst) }, "The pair")),
  allowed && sources.map((source) => element("div", { class: "row" }, [["confirm", "Accept", "accepted"], ["retract", "Reject", "rejected"]]
    .map(([name, title, verb]) => decision(`${title} ${of(source)} …`, { decision: name, selection: { source, src, dst, metric } }, () => "", (answer) => decided(verb, answer))))));
}

function choice(label, name, options) {
  return element("label", {}, `${label} `, element("select", { on: { change: (event) => {
    view[name] = event.target.value;
    if (name === "state") view.reason = "";
    const query = new URLSearchParams(Object.entries(view).filter(([, value]) => value && value !== "open")).toString();
    history.replaceState(null, "", `quarantine${query ? `?${query}` : ""}`);
    refresh();
  } } }, options.map(([value, text]) => element("option", { value, selected: value === view[name] }, text))));
}

function row(sample, box) {
  const types = [sample.src_vm, sample.dst_vm].filter(Boolean).join(" → ");
  const { name, shown, scale } = metricOf(sample.metric);
  const how = [sample.tool, sample.connections && `${sample.connections} connections`, types].filter(Boolean).join(", ");
  return {
    data: { key: sample.id },
    cells: [
      [box, " ", sample.src === sample.dst ? sample.src : pairLink(sample.src, sample.dst)],
      [name, element("small", { class: "muted" }, how)],
      shown(sample.value * scale),
      when(sample.measured_at_s),
      [sample.token ? `token ${sample.token}` : sample.batch, element("small", { class: "muted" }, since(sample.arrived_at_s, `batch ${sample.batch_id}, `))],
      [sample.reason, sample.decided_by !== null && element("small", { class: "muted" },
        since(sample.decided_at_s, `${view.state} by ${sample.decided_by} `, `${sample.decided_because && `: ${sample.decided_because}`}${sample.accepted_in ? `, in batch ${sample.accepted_in}` : ""}`))],
    ],
  };
}

refresh();
