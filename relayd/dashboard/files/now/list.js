// Transfers in flight, and those that ended lately.

import { all, get } from "../shared/api.js";
import { element, replace } from "../shared/dom.js";
import { keepFresh, soon, stateLine } from "../shared/live.js";
import { cardTable, choice, commands, more, partsOf, redraw, since, small } from "../shared/parts.js";
import { content, restsOn, show } from "../shared/shell.js";
import { ending, KIND, pace, progress, route, stateTag, transferAddress } from "./state.js";

const HEADS = [["Transfer"], ["State"], ["Path"], ["Arrived"], ["Rate", "number"]];
const ENDS = ["finished", "failed", "cancelled"];
const PAGE = 25;
const GATHER_MS = 300; // many programs report at once: one question for all of them
const RENEW_MS = 15_000; // a transfer falls silent, or late, without an event

// health: parts above and below those of transfers in flight, and what renews them.
export function nowPage(health) {
  const line = stateLine();
  const { "in-flight": flying, ended } = partsOf("in-flight", "ended");
  replace(content, line, health.above, flying, health.below, ended);
  const shown = { pages: { flying: 1, ended: 1 }, state: ENDS[0] };
  async function refresh() {
    await show(async () => {
      const [now, past] = await Promise.all([newest("in-flight", shown.pages.flying), newest(shown.state, shown.pages.ended), health.refresh()]);
      restsOn(now.snapshot);
      const isNew = !now.transfers.length && !past.transfers.length && shown.state === ENDS[0] && !(await get("v1/transfers", { limit: 1 })).transfers.length;
      redraw(flying, [isNew, now.transfers, now.next_cursor], () => (isNew ? nothingYet() : inFlight(now, () => older("flying"))));
      redraw(ended, [isNew, past.transfers, past.next_cursor, shown.state], () => !isNew && itsEnd(past, shown.state, choose, () => older("ended")));
    });
  }
  const ofTransfers = heard();
  const renew = keepFresh(line, refresh, (event, again) => {
    ofTransfers(event, again);
    if (event.kind !== "campaign" && event.kind !== KIND) soon(again);
  });
  setInterval(renew, RENEW_MS); // a day's probes and what they cost go on without an event, too

  async function older(part) {
    shown.pages[part] += 1;
    await renew();
  }
  async function choose(state) {
    shown.state = state;
    shown.pages.ended = 1;
    await renew();
  }
}

// Asks again soon after an event of a transfer; events that come meanwhile are answered with it.
export function heard(wanted = () => true) {
  let waiting = null;
  return ({ kind, data }, again) => {
    if (kind !== KIND || waiting !== null || !wanted(data)) return;
    waiting = setTimeout(() => {
      waiting = null;
      again();
    }, GATHER_MS);
  };
}

const newest = (state, pages) => all("v1/transfers", "transfers", { state, limit: PAGE }, { most: PAGE * pages });

function inFlight(found, older) {
  const late = found.transfers.filter((each) => each.is_late).length;
  const text = `Transfers under way, the newest first${late ? `; ${late} late` : ""}`;
  return [element("h2", {}, "In flight"), found.transfers.length ? table("in-flight", "Ends", text, found, older)
    : element("p", { class: "muted" }, "None: nothing is under way, or its program does not report it.")];
}

function itsEnd(found, state, choose, older) {
  const were = state === "cancelled" ? "were " : "";
  return [element("h2", {}, "Ended"), element("div", { class: "row" }, choice(`Show those that ${were}`, ENDS.map((each) => [each, each]), state, choose)),
    found.transfers.length ? table("ended", "Ended", `Transfers that ${were}${state}, the newest first`, found, older)
      : element("p", { class: "muted" }, "None.")];
}

function table(name, end, caption, { transfers, next_cursor: next }, older) {
  return [cardTable(`transfers ${name}`, caption, [...HEADS, [end, "number"]], transfers.map(row)),
    next && more("Show older ones", older)];
}

function row(transfer) {
  return {
    data: { transfer: transfer.id, key: transfer.id },
    cells: [
      [element("a", { href: transferAddress(transfer.id) }, transfer.label || transfer.id),
        transfer.label && small(transfer.id)],
      [stateTag(transfer), transfer.reported_s !== null && transfer.ended_s === null && small(since(transfer.reported_s, "reported "))],
      route(transfer), progress(transfer), pace(transfer), ending(transfer),
    ],
  };
}

const nothingYet = () => element("section", {}, element("h2", {}, "No transfer has been reported"),
  element("p", {}, "Programs say when a transfer begins, how far it is and how it ended; this page then shows its rate and its end against plan and deadline. ",
    "A program, or a shell on this machine, says it with:"),
  commands("relayd transfers begin us-east sa --volume 500GB --id nightly-7 --deadline 2h\nrelayd transfers progress nightly-7 --moved 120GB\nrelayd transfers end nightly-7"));
