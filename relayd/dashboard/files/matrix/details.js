// What is known of the pair that is pointed at, in a place of its own, so that nothing jumps.

import { get } from "../shared/api.js";
import { band } from "../shared/band.js";
import { element, facts, replace } from "../shared/dom.js";
import { bounds, gbps, mbps, ms, percent, UNKNOWN } from "../shared/format.js";
import { METRICS } from "../shared/metrics.js";
import { age } from "../shared/parts.js";
import { linkPath, pairAddress } from "../shared/pairs.js";

const PATIENCE_MS = 150; // a pointer that crosses the matrix asks nothing
const MOST_KEPT = 500;

function said(estimate, shown) {
  const { source, samples, measured_at_s: at_s, basis, expected, high } = estimate;
  const rest = [source, samples && `${samples} sample${samples === 1 ? "" : "s"}`, at_s && age(estimate), basis]
    .filter(Boolean).flatMap((each, at) => (at ? [", ", each] : [each]));
  const text = bounds(estimate, shown);
  return [text, Number.isFinite(expected) && band(estimate, high, text), element("small", {}, rest)];
}

const known = (link) => facts([
  ["Per-flow", said(link.per_flow_mbps, mbps)],
  ["Aggregate", said(link.aggregate_gbps, gbps)],
  ["RTT", said(link.rtt_ms, ms)],
  ["Loss", link.loss_pct === null ? UNKNOWN : percent(link.loss_pct)],
  ...(link.address === "private" ? [["Addresses", "private"]] : []),
]);

// places: id to its facts. isKnown(src, dst): whether there is a link, for figures that few have.
export function detailsOf(places, isKnown) {
  const kept = new Map();
  const title = element("h2", {}, "A pair in detail");
  const where = element("p", { class: "muted where" }, "Point at a cell, or reach the matrix by the tab key and move with the arrow keys.");
  const [value, links] = ["value", "links"].map((name) => element("p", { class: name }));
  const rest = element("div", { class: "rest" }, element("p", { class: "muted" }, "Click or Enter opens the pair. Home and End go "
    + "to the ends of a row, with Ctrl to the ends of the matrix; Page Up and Down move by ten."));
  const panel = element("aside", { class: "panel details", "aria-label": "The pair that is pointed at" },
    element("div", { class: "head" }, title, where, value, links), rest);
  let pair = []; // names of both ends
  let [asked, timer] = [null, 0];

  function fill(content) {
    rest.classList.remove("waiting");
    replace(rest, content);
  }
  async function ask(key, [from, to], hasFigure) {
    const { signal } = asked = new AbortController();
    let content;
    try {
      if (!hasFigure && !(await isKnown(from, to))) throw new Error("Nothing is known of this pair: neither a sample nor a baseline.");
      if (signal.aborted) return;
      content = known((await get(linkPath(from, to), {}, { signal })).link);
      if (kept.size >= MOST_KEPT) kept.clear();
      kept.set(key, content);
    } catch (error) {
      content = element("p", { class: "muted" }, error.message);
    }
    if (!signal.aborted) fill(content);
  }
  function show(matrix, { src, dst }, again = false) {
    const [from, to] = [matrix.regions[src], matrix.regions[dst]];
    const figure = matrix.values[src][dst];
    const place = (id) => [places.get(id)?.city, places.get(id)?.country].filter(Boolean).join(", ") || id;
    const { title: name, shown } = METRICS[matrix.metric];
    const told = [figure === null ? "unknown" : shown(figure), matrix.sources?.[src][dst], matrix.said?.(src, dst)].filter(Boolean).join(", ");
    const isOne = src === dst;
    title.textContent = isOne ? from : `${from} → ${to}`;
    where.textContent = isOne ? place(from) : `${place(from)} to ${place(to)}`;
    value.textContent = isOne ? "The region itself" : `${name}: ${told}`;
    const key = `${from} ${to}`;
    if (pair.join(" ") === key && (!again || kept.has(key) || isOne)) return;
    pair = [from, to];
    asked?.abort();
    clearTimeout(timer);
    panel.classList.add("chosen");
    replace(links, !isOne && [element("a", { href: pairAddress(from, to) }, "The pair"),
      element("a", { href: `./?${new URLSearchParams({ src: from, dst: to })}` }, "Ask for a plan")]);
    if (isOne || kept.has(key)) fill(isOne ? null : kept.get(key));
    else {
      rest.classList.add("waiting"); // the figures before stay, dimmed, until the new ones come
      timer = setTimeout(() => ask(key, pair, figure !== null), PATIENCE_MS);
    }
  }
  return {
    panel, show,
    // The same pair in another matrix.
    again(matrix) {
      const [src, dst] = pair.map((id) => matrix.regions.indexOf(id));
      if (src >= 0 && dst >= 0) show(matrix, { src, dst }, true);
    },
    // After a new snapshot, what was asked before no longer holds.
    forget: () => kept.clear(),
  };
}
