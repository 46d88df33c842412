// Where to reduce: the part of the keys for each region, beside what is done without a plan.

import { element, sortable } from "../shared/dom.js";
import { duration, percent, usd, volume } from "../shared/format.js";
import { bar } from "../shared/parts.js";
import { advice, basis, bottleneck, costOf, panel, timeOf, vmsOf } from "./parts.js";
import { verdictPanel } from "./verdict.js";

const greatest = (fractions) => Object.entries(fractions).sort(([, one], [, other]) => other - one);

export const spoken = ({ fractions }) => `Reduce ${greatest(fractions).slice(0, 3).map(([region, share]) => `${percent(100 * share)} in ${region}`).join(", ")}`;

function fractions(plan) {
  const inputs = plan.request.input_gb;
  const total = Object.values(inputs).reduce((sum, gb) => sum + gb, 0);
  const share = (part, label) => element("span", { class: "barred" }, bar(part, label), element("span", { class: "figures" }, percent(100 * part)));
  const rows = [...new Set([...Object.keys(inputs), ...Object.keys(plan.fractions)])].map((region) => ({ region, has: (inputs[region] ?? 0) / total, gets: plan.fractions[region] ?? 0 }));
  return panel("fractions", "Where the data is, and where it is reduced", sortable("By region", [
    { title: "Region", value: ({ region }) => region },
    { title: "Of the input", number: true, value: ({ has }) => has, shown: ({ has, region }) => share(has, `Of the input in ${region}`) },
    { title: "Reduces", number: true, value: ({ gets }) => gets, shown: ({ gets, region }) => share(gets, `Reduced in ${region}`) },
  ], rows, { order: 2, descending: true }));
}

const options = (plan) => panel("options", "Side by side", sortable("This placement, the other assumption, and what is done without a plan", [
  { title: "Placement", value: (each) => each.name, shown: (each) => [each.name, each.name === plan.links ? [" ", element("span", { class: "tag" }, "chosen")] : null] },
  { title: "Time", number: true, value: (each) => each.duration_s, shown: (each) => duration(each.duration_s) },
  { title: "It promises", number: true, value: (each) => each.promised_s, shown: (each) => duration(each.promised_s) },
  { title: "Between regions", number: true, value: (each) => each.moved_gb, shown: (each) => volume(each.moved_gb) },
  { title: "Total", number: true, value: (each) => each.cost_usd.total, shown: (each) => usd(each.cost_usd.total) },
], plan.options, { order: 1 }));

export function shown(plan, { commands }) {
  return {
    head: verdictPanel(plan, {
      kind: "direct", mark: "◔", title: spoken(plan), ends: `${volume(plan.shuffle_gb)} to shuffle between ${Object.keys(plan.request.input_gb).length} regions`,
      headline: [timeOf(plan), costOf(plan), vmsOf(plan), ["Between regions", volume(plan.moved_gb), `of ${volume(plan.shuffle_gb)}`]],
    }),
    body: [
      element("div", { class: "stack" }, fractions(plan), options(plan)), element("div", { class: "stack" }, bottleneck(plan), advice(plan), commands), basis(plan),
    ],
  };
}
