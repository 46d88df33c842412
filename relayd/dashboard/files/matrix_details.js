// What is known of the pair that is pointed at, in a place of its own, so that nothing jumps.

import { get } from "./api.js";
import { element, facts, replace } from "./dom.js";
import { ago, bounds, gbps, mbps, ms, percent, UNKNOWN } from "./format.js";
import { METRICS } from "./matrix_metrics.js";

const PATIENCE_MS = 150; // a pointer that crosses the matrix asks nothing
const MOST_KEPT = 500;

function said(estimate, shown) {
  const rest = [
    estimate.source,
    estimate.samples ? `${estimate.samples} sample${estimate.samples === 1 ? "" : "s"}` : "",
    estimate.measured_at_s ? ago(estimate.measured_at_s) : "",
    estimate.basis,
  ].filter(Boolean).join(", ");
  return [bounds(estimate, shown), element("small", {}, rest)];
}

export class Details {
  constructor(places) {
    this.places = places; // id to its facts
    this.kept = new Map();
    this.title = element("h2");
    this.where = element("p", { class: "muted where" });
    this.value = element("p", { class: "value" });
    this.rest = element("div", { class: "rest" });
    this.links = element("p", { class: "links" });
    this.panel = element("aside", { class: "panel details", "aria-label": "The pair that is pointed at" },
      element("div", { class: "head" }, this.title, this.where, this.value, this.links), this.rest);
    this.shown = "";
    this.title.textContent = "A pair in detail";
    this.where.textContent = "Point at a cell, or reach the matrix by the tab key and move with the arrow keys.";
    replace(this.rest, element("p", { class: "muted" }, "Click or Enter opens the pair. Home and End go to the ends of a row, with Ctrl to the ends of the matrix; Page Up and Down move by ten."));
  }

  // A new snapshot: what was asked before no longer holds.
  forget() {
    this.kept.clear();
  }

  show(matrix, metric, { src, dst }) {
    const [from, to] = [matrix.regions[src], matrix.regions[dst]];
    const value = matrix.values[src][dst];
    const source = matrix.sources?.[src][dst];
    const place = (id) => [this.places.get(id)?.city, this.places.get(id)?.country].filter(Boolean).join(", ") || id;
    const { title, shown } = METRICS[metric];
    this.title.textContent = src === dst ? from : `${from} → ${to}`;
    this.where.textContent = src === dst ? place(from) : `${place(from)} to ${place(to)}`;
    this.value.textContent = src === dst ? "The region itself" : `${title}: ${value === null ? "unknown" : shown(value)}${source ? `, ${source}` : ""}`;
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
    const query = new URLSearchParams({ src: from, dst: to });
    replace(this.links, element("a", { href: `pair?${query}` }, "The pair"), element("a", { href: `plan?${query}` }, "Plan a transfer"));
    const found = this.kept.get(this.shown);
    if (found) this.fill(found);
    else {
      this.rest.classList.add("waiting"); // the figures before stay, dimmed, until the new ones come
      this.timer = setTimeout(() => this.ask(from, to), PATIENCE_MS);
    }
  }

  async ask(from, to) {
    this.asked = new AbortController();
    const wanted = this.shown;
    try {
      const path = `v1/links/${encodeURIComponent(from)}/${encodeURIComponent(to)}`;
      const { link } = await get(path, {}, { signal: this.asked.signal });
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
    ]));
  }
}
