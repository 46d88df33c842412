// Now: what is wrong and what it costs, whether what is known can be trusted, and the transfers under way; or one of them.

import { get } from "../shared/api.js";
import { partsOf, redraw } from "../shared/parts.js";
import { oldPriceNotes } from "../shared/prices.js";
import { changesOf } from "./changed.js";
import { incidentsOf } from "./incidents.js";
import { nowPage } from "./list.js";
import { onePage } from "./one.js";
import { tilesOf } from "./tiles.js";

const DAY_S = 86400;
const MOST_CHANGES = 3;
const id = new URLSearchParams(location.search).get("id");

function health() {
  const { prices, wrong, tiles, changed } = partsOf("prices", "wrong", "tiles", "changed");
  async function refresh() {
    const [found, trouble, changes] = await Promise.all([get("v1/overview"), get("v1/incidents"),
      get("v1/changes", { since_s: DAY_S, source: "measured", limit: MOST_CHANGES })]);
    const { knowledge, events, checked_at_s: now, measuring, since_s: _, ...others } = found;
    const isEmpty = found.snapshot.source === "baseline";
    const isQuiet = !trouble.incidents.length && !trouble.transfers.length;
    const isWatched = measuring.budget_usd !== null;
    redraw(prices, [isEmpty, knowledge.old_prices], () => !isEmpty && oldPriceNotes(knowledge.old_prices));
    redraw(wrong, [trouble.incidents, trouble.transfers, isWatched, isEmpty], () => !(isEmpty && isQuiet) && incidentsOf(trouble, now, isWatched));
    redraw(tiles, [isEmpty, knowledge, measuring, others, trouble.saved], () => !isEmpty && tilesOf({ ...found, saved: trouble.saved }));
    // The time that is compared with moves on; what was found is what counts.
    redraw(changed, [isEmpty, events, { ...changes, since_s: 0 }], () => !isEmpty && changesOf(found, changes));
  }
  return { above: [prices, wrong, tiles], below: [changed], refresh };
}

if (id) onePage(id);
else nowPage(health());
