// Now: whether what is known can be trusted, what has changed, and the transfers under way; or one of them.

import { get } from "../shared/api.js";
import { element, replace } from "../shared/dom.js";
import { redraw } from "../shared/parts.js";
import { showChanges } from "./changed.js";
import { nowPage } from "./list.js";
import { onePage } from "./one.js";
import { showTiles } from "./tiles.js";

const DAY_S = 86400;
const MOST_CHANGES = 3;
const id = new URLSearchParams(location.search).get("id");

function health() {
  const [prices, tiles, changed] = ["prices", "tiles", "changed"].map((name) => element("section", { class: `part ${name}` }));
  async function refresh() {
    const [found, changes] = await Promise.all([get("v1/overview"), get("v1/changes", { since_s: DAY_S, source: "measured", limit: MOST_CHANGES })]);
    const isEmpty = found.snapshot.source === "baseline";
    showTiles(prices, tiles, found, isEmpty);
    // The time that is compared with moves on; what was found is what counts.
    redraw(changed, [isEmpty, found.events, { ...changes, since_s: 0 }], () => (isEmpty ? replace(changed) : showChanges(changed, found, changes)));
  }
  return { parts: [prices, tiles, changed], refresh };
}

if (id) onePage(id);
else nowPage(health());
