// What has changed since yesterday, or since another time: from snapshots that the store keeps.

import { get } from "../shared/api.js";
import { cardTable, redraw, since, tag } from "../shared/parts.js";
import { element, replace } from "../shared/dom.js";
import { FIGURES } from "../shared/figures.js";
import { ago, figure, times, when } from "../shared/format.js";
import { pairLink } from "../shared/pairs.js";
import { show } from "../shared/shell.js";

const TIMES = [["an hour ago", 3600], ["yesterday", 86400], ["a week ago", 7 * 86400], ["a month ago", 30 * 86400]];
const PAGE = 20;

export function changesPart(part) {
  let since_s = 86400;
  let source = "measured";
  let pages = 1;
  const body = element("div");
  const times_ = choice("Since", TIMES.map(([text, seconds]) => [text, String(seconds)]), String(since_s), (value) => {
    since_s = Number(value);
    again();
  });
  const sources = choice("Show", [["measured here", "measured"], ["inferred from others", "inferred"], ["all", ""]], source, (value) => {
    source = value;
    again();
  });
  replace(part, element("h2", {}, "What has changed"), element("div", { class: "row" }, times_, sources), body);

  function again() {
    pages = 1;
    show(refresh);
  }
  async function refresh() {
    const found = await get("v1/changes", { since_s, source, limit: Math.min(1000, PAGE * pages) });
    // The time that is asked for moves on; what was found is what counts.
    redraw(body, { ...found, since_s, source, pages }, () => draw(found));
  }
  function draw(found) {
    replace(body, ...described(found, (seconds) => {
      since_s = seconds;
      again();
    }));
    if (found.next_cursor && PAGE * pages < 1000) {
      body.append(element("div", { class: "row" }, element("button", { type: "button", on: { click: () => {
        pages += 2;
        show(refresh);
      } } }, `Show more of ${figure(found.total)}`)));
    }
  }
  return { refresh };
}

function choice(label, options, value, chosen) {
  return element("label", {}, `${label} `, element("select", { on: { change: (event) => chosen(event.target.value) } },
    options.map(([text, each]) => element("option", { value: each, selected: each === value }, text))));
}

function described(found, compareSince) {
  if (!found.oldest) {
    return [element("p", { class: "empty" }, "There is no snapshot yet, so nothing to compare. ",
      element("code", {}, "relayd import"), " or ", element("code", {}, "relayd probe"), " makes one.")];
  }
  if (!found.before) {
    const age = Date.now() / 1000 - found.oldest.created_at_s;
    return [element("div", { class: "empty" }, element("p", {}, element("strong", {}, `No snapshot is kept from ${ago(found.since_s)}. `),
      since(found.oldest.created_at_s, `The oldest, ${found.oldest.id}, was made `, ".")),
      found.oldest.id === found.snapshot.id
        ? element("p", { class: "muted" }, "It is the only one: changes show once there is a second.")
        : element("button", { type: "button", on: { click: () => compareSince(Math.max(1, Math.floor(age) - 1)) } }, "Compare with the oldest")),
    shifts(found)];
  }
  if (found.before.id === found.snapshot.id) {
    return [element("p", {}, since(found.before.created_at_s, `Nothing: snapshot ${found.before.id}, made `, ", still is the newest.")), shifts(found)];
  }
  const { measured = 0, inferred = 0, baseline = 0 } = found.total_by_source;
  const text = `Between snapshot ${found.before.id} of ${when(found.before.created_at_s)} and now, ${count(measured, "measured estimate")}, ${figure(inferred)} inferred and ${figure(baseline)} of the baseline left the bounds that they had.`;
  return [element("p", {}, text), regions(found), found.changes.length ? table(found.changes) : element("p", { class: "muted" }, "None of those chosen above."), shifts(found)];
}

const count = (number, name) => `${figure(number)} ${name}${number === 1 ? "" : "s"}`;

function regions({ new_regions: come, lost_regions: gone }) {
  if (!come.length && !gone.length) return null;
  return element("p", {}, come.length ? [tag("new regions", "good"), ` ${come.join(", ")} `] : null,
    gone.length ? [tag("lost regions", "bad"), ` ${gone.join(", ")}`] : null);
}

function table(changes) {
  return cardTable("changes", "Estimates that left their bounds, the largest change first",
    [["Where"], ["What"], ["Then", "number"], ["Now", "number"], ["Now / then", "number"], ["In words"]], changes.map((change) => {
      const [name, shown] = FIGURES[change.metric] ?? [change.metric, figure];
      const estimate = (found) => element("span", { title: found.basis }, shown(found.expected),
        element("small", { class: "muted" }, `${figure(found.low)} to ${figure(found.high)}, ${found.source}`));
      return { cells: [
        change.dst ? pairLink(change.src, change.dst) : change.src, name, estimate(change.before), estimate(change.after),
        times(change.ratio), words(change),
      ] };
    }));
}

function words({ ratio, metric }) {
  const more = FIGURES[metric]?.[2] ?? true;
  if (ratio === null) return "was nothing";
  const better = ratio > 1 === more;
  const size = ratio >= 2 ? `${ratio.toFixed(1)} times as much` : ratio <= 0.5 ? `down to ${percent(ratio)}`
    : ratio > 1 ? `${percent(ratio - 1)} more` : `${percent(1 - ratio)} less`;
  return [size, " ", tag(better ? "better" : "worse", better ? "good" : "bad")];
}

const percent = (share) => `${Math.round(100 * share) || (100 * share).toPrecision(1)} %`;

function shifts({ shifts: found }) {
  if (!found.length) return null;
  return element("div", { class: "shifts" }, element("h3", {}, "Lasting changes of level that were found since"),
    element("ul", {}, found.map((shift) => {
      const [name, shown] = FIGURES[shift.metric] ?? [shift.metric, figure];
      return element("li", {}, pairLink(shift.src, shift.dst), `: ${name.toLowerCase()} ${shown(shift.before)} to ${shown(shift.after)} from ${when(shift.at_s)}`, since(shift.found_at_s, ", settled "));
    })));
}
