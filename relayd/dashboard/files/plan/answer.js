// A plan for people: what to do and why, what binds, and what would help.

import { element } from "../shared/dom.js";
import { duration, gbps, rate, usd, volume } from "../shared/format.js";
import { withCode } from "../shared/parts.js";
import { verdictText } from "./figures.js";

const listed = (vms) =>
  Object.entries(vms)
    .map(([region, count]) => `${count} at ${region}`)
    .join(", ");

const MARKS = { direct: "→", relay: "⤼", split: "⇉" };

export function verdict(plan) {
  const [low, high] = [plan.throughput_gbps_low, plan.throughput_gbps_high];
  const headline = [
    ["Throughput", `${rate(plan.throughput_gbps)} Gbit/s`, `${rate(low)} to ${rate(high)} Gbit/s`],
    ["Time", duration(plan.duration_s), `for ${volume(plan.request.volume_gb)}`],
    ["Cost", usd(plan.cost_usd.total), `${usd(plan.cost_usd.egress)} egress, ${usd(plan.cost_usd.vm)} VMs`],
    ["VMs", String(Object.values(plan.vms).reduce((sum, count) => sum + count, 0)), listed(plan.vms)],
  ];
  return element(
    "section",
    { class: `panel verdict verdict-${plan.verdict}`, "aria-labelledby": "verdict" },
    plan.outdated.map((text) => element("p", { class: "outdated", role: "alert" }, withCode(text))),
    element(
      "p",
      { class: "ends muted" },
      `${plan.request.src} → ${plan.request.dst}, ${volume(plan.request.volume_gb)}`,
    ),
    element(
      "h2",
      { id: "verdict", class: "badge" },
      element("span", { class: "mark", "aria-hidden": "true" }, MARKS[plan.verdict]),
      verdictText(plan),
    ),
    element("p", { class: "reason" }, plan.reason),
    element(
      "ul",
      { class: "headline" },
      headline.map(([name, value, more]) =>
        element(
          "li",
          {},
          element("span", { class: "muted" }, name),
          element("strong", {}, value),
          element("small", { class: "muted" }, more),
        ),
      ),
    ),
    element("p", { class: "muted" }, plan.confidence),
  );
}

// "Gbit/s per VM" is of one more VM.
const unitOf = (unit) => unit.replace(/^Gbit\/s per /, "");

export function bottleneck(plan) {
  const found = plan.bottlenecks.map((limit) =>
    element(
      "li",
      {},
      element("strong", {}, `${limit.constraint} at ${limit.region}`),
      `: one more ${unitOf(limit.unit)} brings ${gbps(limit.gain_per_unit)}.`,
    ),
  );
  return element(
    "section",
    { class: "panel", "aria-labelledby": "limits" },
    element("h2", { id: "limits" }, "Where the bottleneck is"),
    found.length
      ? element("ul", {}, found)
      : element(
          "p",
          { class: "muted" },
          "No cap binds: going faster would not pay under this request's objective and limits.",
        ),
  );
}

export function advice(plan) {
  const others = plan.warnings.filter((text) => !plan.outdated.includes(text));
  const effect = (each) =>
    each.cost_usd === 0 ? "free" : `${each.cost_usd < 0 ? "saves " : "+"}${usd(Math.abs(each.cost_usd))}`;
  return element(
    "section",
    { class: "panel", "aria-labelledby": "advice" },
    element("h2", { id: "advice" }, "What would help"),
    plan.advice.length
      ? element(
          "ul",
          {},
          plan.advice.map((each) =>
            element(
              "li",
              {},
              element("strong", {}, each.action),
              `: ${each.effect} `,
              element("span", { class: "tag" }, effect(each)),
            ),
          ),
        )
      : element("p", { class: "muted" }, "Nothing cheaper than the plan itself."),
    others.length > 0 && [
      element("h3", {}, "Notes"),
      element(
        "ul",
        { class: "notes" },
        others.map((text) => element("li", {}, text)),
      ),
    ],
  );
}
