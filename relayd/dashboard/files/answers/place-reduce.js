// Where to reduce: the part of the keys for each region, beside what is done without a plan.

import { element, number, sortable, words } from "../shared/dom.js";
import { duration, percent, usd, volume } from "../shared/format.js";
import { barred, panel } from "../shared/parts.js";
import { advice, basis, bottleneck, costOf, timeOf, verdictPanel, vmsOf } from "./parts.js";

export const spoken = ({ fractions }) => `Reduce ${Object.entries(fractions).sort(([, one], [, other]) => other - one).slice(0, 3)
  .map(([region, share]) => `${percent(100 * share)} in ${region}`).join(", ")}`;

function fractions(plan) {
  const inputs = plan.request.input_gb;
  const total = Object.values(inputs).reduce((sum, gb) => sum + gb, 0);
  const share = (part, label) => barred(part, label, percent(100 * part));
  const rows = [...new Set([...Object.keys(inputs), ...Object.keys(plan.fractions)])]
    .map((region) => ({ region, has: (inputs[region] ?? 0) / total, gets: plan.fractions[region] ?? 0 }));
  return panel("fractions", "Where the data is, and where it is reduced", sortable("By region", [
    words("Region", "region"),
    number("Of the input", "has", (has, { region }) => share(has, `Of the input in ${region}`)),
    number("Reduces", "gets", (gets, { region }) => share(gets, `Reduced in ${region}`)),
  ], rows, { order: 2, descending: true }));
}

const options = (plan) => panel("options", "Side by side", sortable("This placement, the other assumption, and what is done without a plan", [
  words("Placement", "name", (name) => [name, name === plan.links && [" ", element("span", { class: "tag" }, "chosen")]]),
  number("Time", "duration_s", duration),
  number("It promises", "promised_s", duration),
  number("Between regions", "moved_gb", volume),
  number("Total", "cost_usd.total", usd),
], plan.options, { order: 1 }));

export const shown = (plan, { commands }) => ({
  head: verdictPanel(plan, {
    kind: "direct", mark: "◔", title: spoken(plan), ends: `${volume(plan.shuffle_gb)} to shuffle between ${Object.keys(plan.request.input_gb).length} regions`,
    headline: [timeOf(plan), costOf(plan), vmsOf(plan), ["Between regions", volume(plan.moved_gb), `of ${volume(plan.shuffle_gb)}`]],
  }),
  body: [
    element("div", { class: "stack" }, fractions(plan), options(plan)),
    element("div", { class: "stack" }, bottleneck(plan), advice(plan), commands), basis(plan),
  ],
});
