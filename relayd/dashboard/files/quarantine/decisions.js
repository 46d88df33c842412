// Deciding about samples: first what that would do to estimates, then the decision itself.

import { post } from "../shared/api.js";
import { asksTwice } from "../shared/asking.js";
import { element } from "../shared/dom.js";
import { FIGURES } from "../shared/figures.js";
import { count, figure, UNKNOWN } from "../shared/format.js";
import { pairLink } from "../shared/pairs.js";
import { cardTable, withCode } from "../shared/parts.js";

const MEANINGS = {
  accept: "They count as your own prober's from then on, whatever physics say.",
  reject: "They stay here for good; nothing rests on them.",
  confirm: "They count as your own prober's from then on.",
  retract: "They count no longer; `relayd data samples restore` lets them count again.",
};
const samples = (number) => `${count(number)} ${number === 1 ? "sample" : "samples"}`;

// title: of the button; request: what is decided about which samples; reason(): why, as typed;
// decided(answer): called when it is done.
export function decision(title, request, reason, decided) {
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
    const [words, shown] = FIGURES[name] ?? [name, figure];
    const value = (of) => (of === null ? UNKNOWN : shown(of));
    return { cells: [dst ? [pairLink(src, dst), address === "private" && " (private)"] : src, words, value(before), value(after), change(before, after)] };
  });
  const shown = total > rows.length ? `; the first ${rows.length}` : "";
  return cardTable("effects", `What it would change: ${count(total)} ${total === 1 ? "figure" : "figures"}, the largest change first${shown}`,
    [["Link or VM"], ["Figure"], ["Now", "number"], ["Then", "number"], ["Change", "number"]], rows);
}

function change(before, after) {
  if (after === null) return "vanishes";
  if (before === null) return "appears";
  return before ? `${after > before ? "+" : "−"}${figure(Math.abs(100 * (after / before - 1)))} %` : "was nothing";
}

export const said = (verb, { samples: number, batch_id: batch }) => [`${samples(number)} ${verb}. The next snapshot heeds it`,
  batch ? ["; ", element("code", {}, `relayd data samples retract --batch ${batch}`), " takes them back."] : "."];
