// Home: ask first; then whether what is known can be trusted, where relays pay, what has changed.

import { get } from "../shared/api.js";
import { askForm } from "./ask.js";
import { beginnings } from "./begin.js";
import { showChanges } from "./changed.js";
import { element, replace } from "../shared/dom.js";
import { showGains } from "./gains.js";
import { keepFresh, soon, stateLine } from "../shared/live.js";
import { showMap } from "./where.js";
import { redraw } from "../shared/parts.js";
import { places } from "../shared/places.js";
import { showTiles } from "./tiles.js";
import { content, restsOn, show } from "../shared/shell.js";

const DAY_S = 86400;
const MOST_CHANGES = 3;
const RENEW_MS = 60_000;

// The matrix was the first page: addresses that were shared then lead to its page.
const OF_THE_MATRIX = ["metric", "group", "sort", "from", "to", "measured", "connections"];
const query = new URLSearchParams(location.search);
if (OF_THE_MATRIX.some((name) => query.has(name))) location.replace(`matrix${location.search}`);
else open();

function open() {
  const part = (name) => element("section", { class: `part ${name}` });
  const [begin, prices, tiles, gains, changed, map] = ["begin", "prices", "tiles", "gains", "changed", "map"].map(part);
  const line = stateLine();
  const ask = askForm();
  replace(content, ask.part, begin, prices, tiles,
    element("div", { class: "columns" }, element("div", {}, gains), element("div", {}, changed, map)), line);
  show(ask.start);

  async function refresh() {
    await show(async () => {
      const [found, known] = await Promise.all([get("v1/overview"), places()]);
      const { snapshot } = found;
      const isEmpty = snapshot.source === "baseline";
      restsOn(snapshot);
      const fleet = isEmpty ? await get("v1/fleet") : null;
      redraw(begin, [isEmpty, fleet?.may_start_campaigns], () => replace(begin, isEmpty && beginnings(fleet)));
      showTiles(prices, tiles, found, isEmpty);
      const [best, changes] = await Promise.all([
        get("v1/relay-gains"), get("v1/changes", { since_s: DAY_S, source: "measured", limit: MOST_CHANGES }),
      ]);
      redraw(gains, best, () => showGains(gains, best));
      // The time that is compared with moves on; what was found is what counts.
      redraw(changed, [isEmpty, found.events, { ...changes, since_s: 0 }],
        () => (isEmpty ? replace(changed) : showChanges(changed, found, changes)));
      await showMap(map, known.regions, best.relays, found.leg_states);
    });
  }
  const renew = keepFresh(line, refresh, ({ kind, data: { detail } }, again) => {
    // Of transfers in flight the number is shown, not how far they are.
    if (kind === "transfer" && (detail.state !== "running" || detail.moved_gb === 0)) again();
    else if (kind !== "campaign" && kind !== "transfer") soon(again);
  });
  // Probes, what they cost and the day they belong to go on without an event.
  setInterval(renew, RENEW_MS);
}
