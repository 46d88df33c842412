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
  const rest = [
    estimate.source,
    estimate.samples ? `${estimate.samples} sample${estimate.samples === 1 ? "" : "s"}` : "",
    estimate.measured_at_s ? age(estimate) : "",
    estimate.basis,
  ].filter(Boolean).flatMap((each, at) => (at ? [", ", each] : [each]));
  return [bounds(estimate, shown), Number.isFinite(estimate.expected) && band(estimate, estimate.high, bounds(estimate, shown)), element("small", {}, rest)];
}

export class Details {
  // places: id to its facts. isKnown(src, dst): whether there is a link, for figures that few links have.
  constructor(places, isKnown) {
    this.places = places;
    this.isKnown = isKnown;
    this.kept = new Map();
    this.title = element("h2");
    this.where = element("p", { class: "muted where" });
    this.value = element("p", { class: "value" });
    this.rest = element("div", { class: "rest" });
    this.links = element("p", { class: "links" });
    this.panel = element("aside", { class: "panel details", "aria-label": "The pair that is pointed at" },
      element("div", { class: "head" }, this.title, this.where, this.value, this.links), this.rest);
    this.shown = "";
    this.pair = null;
    this.title.textContent = "A pair in detail";
    this.where.textContent = "Point at a cell, or reach the matrix by the tab key and move with the arrow keys.";
    replace(this.rest, element("p", { class: "muted" }, "Click or Enter opens the pair. Home and End go to the ends of a row, "
      + "with Ctrl to the ends of the matrix; Page Up and Down move by ten."));
  }

  // A new snapshot: what was asked before no longer holds.
  forget() {
    this.kept.clear();
    this.shown = "";
  }

  // The same pair in another matrix.
  again(matrix, metric) {
    const [src, dst] = (this.pair ?? []).map((id) => matrix.regions.indexOf(id));
    if (src >= 0 && dst >= 0) this.show(matrix, metric, { src, dst });
  }

  show(matrix, metric, { src, dst }) {
    const [from, to] = [matrix.regions[src], matrix.regions[dst]];
    const value = matrix.values[src][dst];
    const source = matrix.sources?.[src][dst];
    const place = (id) => [this.places.get(id)?.city, this.places.get(id)?.country].filter(Boolean).join(", ") || id;
    const { title, shown } = METRICS[metric];
    this.title.textContent = src === dst ? from : `${from} → ${to}`;
    this.where.textContent = src === dst ? place(from) : `${place(from)} to ${place(to)}`;
    const figure = value === null ? "unknown" : shown(value);
    const more = [source, src === dst ? "" : matrix.said?.(src, dst)].filter(Boolean).map((each) => `, ${each}`).join("");
    this.value.textContent = src === dst ? "The region itself" : `${title}: ${figure}${more}`;
    this.pair = [from, to];
    if (this.shown === `${from} ${to}`) return;
    this.asked?.abort();
    clearTimeout(this.timer);
    this.shown = `${from} ${to}`;
    this.panel.classList.add("chosen");
    replace(this.links);
    if (src === dst) {
      replace(this.rest);
      return;
    }
    replace(this.links, element("a", { href: pairAddress(from, to) }, "The pair"),
      element("a", { href: `./?${new URLSearchParams({ src: from, dst: to })}` }, "Plan a transfer"));
    const found = this.kept.get(this.shown);
    if (found) this.fill(found);
    else {
      this.rest.classList.add("waiting"); // the figures before stay, dimmed, until the new ones come
      this.timer = setTimeout(() => this.ask(from, to, value === null ? () => this.isKnown(src, dst) : () => true), PATIENCE_MS);
    }
  }


  async ask(from, to, isKnown) {
    this.asked = new AbortController();
    const wanted = this.shown;
    try {
      if (!(await isKnown())) throw new Error("Nothing is known of this pair: neither a sample nor a baseline.");
      if (wanted !== this.shown) return;
      const { link } = await get(linkPath(from, to), {}, { signal: this.asked.signal });
      if (this.kept.size >= MOST_KEPT) this.kept.clear();
      this.kept.set(wanted, link);
      if (wanted === this.shown) this.fill(link);
    } catch (error) {
      if (error.name === "AbortError" || wanted !== this.shown) return;
      this.rest.classList.remove("waiting");
      replace(this.rest, element("p", { class: "muted" }, error.message));
    }
  }

  fill(link) {
    this.rest.classList.remove("waiting");
    replace(this.rest, facts([
      ["Per-flow", said(link.per_flow_mbps, mbps)],
      ["Aggregate", said(link.aggregate_gbps, gbps)],
      ["RTT", said(link.rtt_ms, ms)],
      ["Loss", link.loss_pct === null ? UNKNOWN : percent(link.loss_pct)],
      ...(link.address === "private" ? [["Addresses", "private"]] : []),
    ]));
  }
}
