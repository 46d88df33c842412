// Quarantine: samples that can't be measurements, by kind of reason, with who sent them.

import { get } from "../shared/api.js";
import { element, replace } from "../shared/dom.js";
import { figure, when } from "../shared/format.js";
import { cardTable, commands, since, withCode } from "../shared/parts.js";
import { content, emptyState, restsOn, show } from "../shared/shell.js";

const PAGE = 50;
const HEADS = [["Link"], ["What", ""], ["Value", "number"], ["Measured"], ["From"], ["Reason"]];

let reason = new URLSearchParams(location.search).get("reason") ?? "";
const filter = element("div", { class: "row" });
const [disputes, list] = ["disputes", "list"].map((name) => element("div", { class: `part ${name}` }));
replace(content, disputes, filter, list);

async function refresh() {
  await show(async () => draw(await get("v1/quarantine", { reason, limit: PAGE })));
}

function draw(found) {
  restsOn(found.snapshot);
  replace(disputes, found.disputes.length ? [element("h2", {}, "In dispute"),
    element("ul", {}, found.disputes.map((text) => element("li", {}, withCode(text))))] : null);
  const total = found.reasons.reduce((sum, each) => sum + each.samples, 0);
  replace(filter, total ? choice(found.reasons, total) : null);
  if (!total) {
    replace(list, emptyState("Nothing is in quarantine",
      element("p", {}, "Samples that can't be measurements are kept here, apart from what estimates rest on: above a VM type's network card, faster than light in fibre, or in the future.")));
    return;
  }
  const samples = [...found.samples];
  let next = found.next_cursor;
  const table = element("div");
  const more = element("button", { type: "button", on: { click: () => show(older) } }, "Show older ones");
  replace(list, table, element("div", { class: "row" }, more),
    element("p", { class: "muted" }, "The command line has the same, with addresses of senders:"), commands("relayd samples quarantine --last 100"));
  fill();

  function fill() {
    replace(table, cardTable("quarantine", `Samples in quarantine, the newest first: ${figure(samples.length)} of ${figure(counted(found.reasons, total))}`, HEADS, samples.map(row)));
    more.hidden = !next;
  }
  async function older() {
    const page = await get("v1/quarantine", { reason, limit: PAGE, cursor: next });
    samples.push(...page.samples);
    next = page.next_cursor;
    fill();
  }
}

function counted(reasons, total) {
  return reason ? (reasons.find((each) => each.reason === reason)?.samples ?? 0) : total;
}

function choice(reasons, total) {
  const options = [["", `all kinds (${figure(total)})`], ...reasons.map((each) => [each.reason, `${each.reason} (${figure(each.samples)})`])];
  return element("label", {}, "Reason ", element("select", { on: { change: (event) => {
    reason = event.target.value;
    history.replaceState(null, "", `quarantine${reason ? `?${new URLSearchParams({ reason })}` : ""}`);
    refresh();
  } } }, options.map(([value, text]) => element("option", { value, selected: value === reason }, text))));
}

function row(sample) {
  const types = [sample.src_vm, sample.dst_vm].filter(Boolean).join(" → ");
  const how = [sample.tool, sample.connections && `${sample.connections} connections`, types].filter(Boolean).join(", ");
  return {
    data: { key: sample.id },
    cells: [
      sample.src === sample.dst ? sample.src : `${sample.src} → ${sample.dst}`,
      [sample.metric, element("small", { class: "muted" }, how)],
      figure(sample.value),
      when(sample.measured_at_s),
      [sample.token ? `token ${sample.token}` : sample.batch, element("small", { class: "muted" }, since(sample.arrived_at_s, `batch ${sample.batch_id}, `))],
      sample.reason,
    ],
  };
}

refresh();
