// What a plan says, in figures that several parts of the page (and the map) show.

import { band } from "../shared/band.js";
import { element } from "../shared/dom.js";
import { rate } from "../shared/format.js";
import { pairAddress } from "../shared/pairs.js";

export const relaysOf = (plan) => plan.paths.filter((path) => path.regions.length === 3).map((path) => path.regions[1]);
export const hasDirect = (plan) => plan.paths.some((path) => path.regions.length === 2);

export function verdictText(plan) {
  const relays = relaysOf(plan);
  if (plan.verdict === "direct") return "Send it direct";
  if (plan.verdict === "relay") return `Relay it through ${relays[0]}`;
  const over = hasDirect(plan) ? ["the direct path", ...relays] : relays;
  return `Split it over ${over.join(over.length === 2 ? " and " : ", ")}`;
}

// The chosen plan with the figures that single candidates have.
export function chosenOption(plan) {
  const { direct, paths: used } = plan;
  return {
    ...plan,
    rtt_ms: Math.max(...used.map((path) => path.rtt_ms)),
    connections: used.map((path) => path.connections),
    gain: direct.throughput_gbps ? plan.throughput_gbps / direct.throughput_gbps : null,
    gain_low: direct.throughput_gbps_high ? plan.throughput_gbps_low / direct.throughput_gbps_high : null,
    cost_ratio: direct.cost_usd ? plan.cost_usd.total / direct.cost_usd.total : null,
  };
}

// Direct, the best relay and what was chosen, as alike columns.
export function columnsOf(plan) {
  const { direct, best_relay: best } = plan;
  return [
    {
      title: "Direct",
      kind: "direct",
      is: direct.throughput_gbps !== null,
      option: direct,
      relays: [],
      note: direct.feasible ? "" : direct.reason,
    },
    {
      title: "Best relay",
      kind: "relay",
      is: Boolean(best),
      option: best ?? {},
      relays: best ? [best.relay] : [],
      note: best ? "" : "There is none within these rules and limits.",
    },
    {
      title: `Chosen: ${plan.verdict}`,
      kind: "chosen",
      is: true,
      relays: relaysOf(plan),
      note: "",
      option: chosenOption(plan),
    },
  ];
}

// A path with links to what is known of each of its links.
export function pathLinks(regions) {
  const name = (region) => element("span", { class: "name" }, region);
  return regions.flatMap((region, at) =>
    at === 0
      ? [name(region)]
      : [
          " ",
          element(
            "a",
            {
              href: pairAddress(regions[at - 1], region),
              "aria-label": `to, by the pair ${regions[at - 1]} to ${region}`,
            },
            "→",
          ),
          " ",
          name(region),
        ],
  );
}

// Each link once, of the direct path and of those chosen.
export function linksOf(plan) {
  const all = [
    [plan.request.src, plan.request.dst],
    ...plan.paths.flatMap(({ regions }) => regions.slice(1).map((region, at) => [regions[at], region])),
  ];
  return [...new Map(all.map((link) => [link.join(" "), link])).values()];
}

// Columns of a table of links, as /v1/links shows them: what one VM pair reaches, on one scale.
export const aggregate = (links) => [
  {
    title: "One VM pair",
    unit: "Gbit/s",
    number: true,
    value: (link) => link.aggregate_gbps.expected,
    shown: (link) => rate(link.aggregate_gbps.expected),
  },
  {
    title: "Bounds",
    number: true,
    value: (link) => link.aggregate_gbps.high - link.aggregate_gbps.low,
    shown: ({ aggregate_gbps: estimate }) => {
      const bounds = `${rate(estimate.low)} to ${rate(estimate.high)}`;
      const most = Math.max(...links.map((link) => link.aggregate_gbps.high));
      return [bounds, band(estimate, most, `One VM pair, ${bounds} Gbit/s`, { width: 90 })];
    },
  },
];
