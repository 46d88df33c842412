// Health in tiles, each a link to what it rests on: good, bad, or not looked at (grey, with what to do). The
// text says what the colour says.

import { element } from "../shared/dom.js";
import { count, duration, percent, usd } from "../shared/format.js";
import { since, small, withCode } from "../shared/parts.js";

const PROMISED = 0.9; // share of samples that bounds should hold
const TOO_FEW_INSIDE = 0.5;
const ENOUGH_SAMPLES = 10; // to judge bounds by

// Red where more than half has outlived its meaning: then most answers rest on figures that fade. Grey where
// most pairs were never measured: how old the others are says little.
function knowledge({ knowledge: known }) {
  const pairs = known.measured + known.inferred + known.baseline;
  const old = known.outlived ? `, ${count(known.outlived)} of them too long ago to rely on` : "";
  const few = 2 * known.measured < pairs;
  return {
    name: "Age of knowledge", href: few ? "campaigns" : "matrix?metric=age",
    kind: 2 * known.outlived > known.measured ? "bad" : known.outlived ? "warn" : few ? "" : "good",
    value: few ? `${count(known.measured)} measured` : since(known.median_sample_s),
    note: [`${count(known.measured)} of ${count(pairs)} pairs measured${old}; the median of their newest samples `, since(known.median_sample_s),
      few ? ". Answers for the others rest on models: price a campaign." : "."],
  };
}

function links({ leg_states: states, measuring }) {
  const number = (condition) => states.filter((state) => state.condition === condition).length;
  const [down, degraded] = [number("down"), number("degraded")];
  const worst = states.find((state) => state.condition === "down") ?? states[0];
  const said = [down && `${count(down)} down`, degraded && `${count(degraded)} degraded`].filter(Boolean).join(", ");
  const isWatched = measuring.budget_usd !== null;
  return {
    name: "Links", href: "fleet#links", kind: down ? "bad" : degraded ? "warn" : isWatched ? "good" : "", value: said || (isWatched ? "none down" : "not watched"),
    note: worst ? [`${worst.src} → ${worst.dst} ${worst.condition === "down" ? "went down" : "degraded"} `, since(Date.parse(worst.since) / 1000), "."]
      : isWatched ? "Plans avoid links that are down." : withCode("No failure would be seen. Start the service with a fleet and a daily budget, or `relayd measure watch`."),
  };
}

function snapshot({ snapshot: { id }, snapshots: { created_at_s, warning } }) {
  return {
    name: "Snapshot", href: "fleet#changed", kind: warning ? "bad" : "good", value: since(created_at_s),
    note: warning ?? `${id} is what all answers rest on.`,
  };
}

function measuring({ measuring: { done, failed, usd: spent, budget_usd: budget } }) {
  const share = budget ? spent / budget : 0;
  return {
    name: "Measured today", href: "campaigns", kind: share >= 1 ? "bad" : share >= 0.8 || failed ? "warn" : done ? "good" : "",
    value: `${count(done)} ${done === 1 ? "probe" : "probes"}`,
    note: [failed ? `${count(failed)} failed. ` : "", budget ? `${usd(spent)} of ${usd(budget)} spent; ` : `${usd(spent)} spent; `, "the day begins at 0:00 UTC."],
  };
}

function prediction({ prediction: found }) {
  const name = "Prediction error";
  if (!found?.samples) {
    const why = found ? "No link was measured since yesterday." : "No snapshot from yesterday is kept to compare with.";
    return { name, href: "fleet#changed", kind: "", value: "–", note: why };
  }
  const { samples, median_error: error, inside_share: inside } = found;
  return {
    name, href: "fleet#changed",
    kind: samples < ENOUGH_SAMPLES ? "" : inside >= PROMISED - 0.1 ? "good" : inside >= TOO_FEW_INSIDE ? "warn" : "bad",
    value: percent(100 * error),
    note: `Median of ${count(samples)} ${samples === 1 ? "sample" : "samples"} against yesterday's estimates; ${Math.round(100 * inside)} % within their bounds (90 % should be).`,
  };
}

function transfers({ transfers: { in_flight: flying, late, silent } }) {
  return {
    name: "Transfers in flight", href: "now", kind: late ? "bad" : silent ? "warn" : flying ? "good" : "", value: `${count(flying)}${late ? `, ${count(late)} late` : ""}`,
    note: [flying ? "As their programs report them" : "No program reports one now", silent ? `; ${count(silent)} silent for too long.` : "."],
  };
}

// Of transfers that took the relays of their plans, against the direct path as the plans stated it.
function savings({ saved: found }) {
  if (!found) return null;
  const { transfers: number, saved_s: time_s, saved_usd: dollars } = found;
  const time = duration(Math.round(Math.abs(time_s)));
  return {
    name: "Saved by relays", href: "now#ended", kind: time_s > 0 || dollars > 0 ? "good" : "warn",
    value: time_s < 0 ? `${time} lost` : `${time}`,
    note: `and ${usd(Math.abs(dollars))} ${dollars < 0 ? "more spent" : "less spent"} than by the direct path: ${count(number)} finished `
      + `${number === 1 ? "transfer" : "transfers"} that went as planned, VMs and egress at the plans' prices.`,
  };
}

function tile({ name, href, kind, value, note }) {
  return element("li", {}, element("a", { class: `tile ${kind}`, href },
    element("span", { class: "muted" }, name), element("strong", { class: kind }, value), small(note)));
}

export const tilesOf = (found) => [element("h2", { class: "hidden-text" }, "Health"), element("ul", { class: "health" },
  [knowledge, links, snapshot, measuring, prediction, transfers, savings].map((made) => made(found)).filter(Boolean).map(tile))];
