// What is wrong, since when, and what it costs: links in trouble, and the transfers that lose by it.

import { drawn, element } from "../shared/dom.js";
import { count, duration, UNKNOWN, usd, when } from "../shared/format.js";
import { pairLink } from "../shared/pairs.js";
import { cardTable, since, small, tag } from "../shared/parts.js";
import { stateTag, transferAddress } from "./state.js";

const FIRST = 8;
const KINDS = { down: "bad", degraded: "warn" };
const time = (seconds) => duration(Math.round(seconds));
const transferLink = ({ id, label }) => element("a", { href: transferAddress(id) }, label || id);

export function incidentsOf({ incidents, transfers, since_s: first }, now, isWatched) {
  const lasting = incidents.filter((each) => !each.is_over).length;
  const named = new Map(transfers.map((each) => [each.id, each]));
  return [element("h2", {}, "What is wrong"), element("p", {}, summary(lasting, transfers, isWatched)),
    transfers.length > 0 && cardTable("harmed", "Transfers in flight that links in trouble touch, or that are late or slow",
      [["Transfer"], ["State"], ["Ends by its plan"], ["Ends as it goes on"], ["More time", "number"], ["More cost", "number"],
        ["If it is changed"]], transfers.map(harmed)),
    // What lasts is always shown, of what is over only some.
    incidents.length > 0 && cardTable("incidents", "Links that are down or degraded, or were in the last week",
      [["Link"], ["State"], ["Since"], ["Until"], ["In this week"], ["Transfers it touches"]],
      incidents.map((each) => incident(each, first, now, named)), Math.max(FIRST, lasting))];
}

function summary(lasting, transfers, isWatched) {
  const links = lasting ? `${count(lasting)} ${lasting === 1 ? "link is" : "links are"} down or degraded`
    : isWatched ? "No link is down or degraded" : "Links are not watched, so no failure of one would be seen";
  if (!transfers.length) return `${links}; no reported transfer is touched, late or slow.`;
  const sum = (key) => transfers.reduce((all, { kept }) => all + Math.max(0, kept?.[key] ?? 0), 0);
  const open = transfers.filter(({ kept }) => kept?.extra_s == null).length;
  const subject = transfers.length === 1 ? "1 transfer is" : `${count(transfers.length)} transfers are`;
  return [`${links}; ${subject} touched, late or slow: `, element("strong", {}, `${time(sum("extra_s"))} and ${usd(sum("extra_usd"))} more`),
    " than planned", open ? `, without ${count(open)} of which that is not known.` : "."];
}

// Against its plan: hours and dollars that it takes more, or less.
function signed(value, shown) {
  if (value === null || value === undefined) return small("not known");
  return `${value < 0 ? "−" : "+"}${shown(Math.abs(value))}`;
}
const at = (seconds) => (seconds === null ? UNKNOWN : when(Math.round(seconds)));

function harmed(transfer) {
  const { id, src, dst, kept, changed, planned_end_s: planned, is_late: late, is_slow: slow } = transfer;
  const never = kept && kept.end_s === null;
  return {
    data: { key: id },
    kinds: { 4: kept?.extra_s > 0 || never ? "bad" : "", 5: kept?.extra_usd > 0 ? "bad" : "" },
    cells: [
      [transferLink(transfer), small(src, " → ", dst)],
      [stateTag(transfer), " ", slow && tag("slow", "warn"), " ", late && tag("late", "bad")],
      planned === null ? small("has no plan") : at(planned),
      never ? tag("never: a link that it takes is down", "bad") : kept ? at(kept.end_s) : small("not known"),
      never ? small("without end") : signed(kept?.extra_s, time), signed(kept?.extra_usd, usd),
      changed ? ["ends ", at(changed.end_s), small(signed(changed.extra_s, time), ", ", signed(changed.extra_usd, usd))]
        : small(never || kept?.extra_s > 0 ? "no other plan is clearly better" : ""),
    ],
  };
}

function incident(each, first, now, named) {
  const { src, dst, condition, since_s: from, until_s: until, is_over: over, reason } = each;
  const ended = !over ? "it lasts" : until === null ? small("not seen: its watcher stopped") : since(until);
  return {
    data: { key: `${src}>${dst} ${from}` },
    cells: [
      [pairLink(src, dst), reason && small(reason)], tag(over ? `was ${condition}` : condition, over ? "muted" : KINDS[condition]),
      from === null ? small("over a week ago") : [since(from), small(at(from))],
      [ended, from !== null && until !== null && small("after ", time(until - from))],
      span(Math.max(first, from ?? first), until ?? (over ? from ?? first : now), first, now, KINDS[condition]),
      each.transfers.length ? each.transfers.map((id, place) => [place > 0 && ", ", transferLink(named.get(id) ?? { id })]) : small("none"),
    ],
  };
}

// The span of an incident on a line from a week ago until now.
function span(from, until, first, now, kind) {
  const x = (seconds) => (100 * (seconds - first)) / (now - first);
  return drawn("svg", { class: `span ${kind}`, viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    drawn("rect", { x: 0, y: 4, width: 100, height: 2 }),
    drawn("rect", { class: "of", x: Math.min(98.5, x(from)), y: 0, width: Math.max(1.5, x(until) - x(from)), height: 10 }));
}
