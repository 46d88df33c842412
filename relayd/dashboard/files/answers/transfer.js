// A transfer: direct, relayed or split.

import { get } from "../shared/api.js";
import { element } from "../shared/dom.js";
import { linkPath, pairAddress } from "../shared/pairs.js";
import { verdict } from "../transfer/answer.js";
import { comparison } from "../transfer/compared.js";
import { linksOf, verdictText } from "../transfer/figures.js";
import { frontier, limitsFor } from "../transfer/frontier.js";
import { basis as rests, candidates, paths } from "../transfer/tables.js";
import { planOnMap } from "../transfer/paths.js";
import { places } from "../shared/places.js";
import { mapPanel } from "../world/map.js";
import { advice, bottleneck } from "./parts.js";

const COMPARED = 6;

export const spoken = verdictText;

// A link may have vanished with a newer snapshot: then there is one row less.
async function known(link, signal) {
  try {
    return (await get(linkPath(...link), {}, { signal })).link;
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

export async function shown(plan, { request, addressOf, go, mapAddress, commands, signal }) {
  const [{ regions }, ...links] = await Promise.all([places(), ...linksOf(plan).map((link) => known(link, signal))]);
  const isPart = plan.alternatives.length + 1 >= Number(request.candidates ?? COMPARED);
  const all = isPart ? addressOf({ ...request, candidates: "1000" }) : null;
  const to = (point) => ({ ...request, ...limitsFor(point, plan) });
  return {
    head: [verdict(plan), element("p", { class: "row links" }, element("a", { href: pairAddress(plan.request.src, plan.request.dst) }, "What is known of the pair"))],
    body: [
      comparison(plan), element("div", { class: "stack" }, bottleneck(plan), advice(plan), commands),
      mapPanel("On the map", planOnMap(plan, regions.filter((region) => region.in_graph), verdictText(plan).toLowerCase()),
        element("p", {}, element("a", { href: mapAddress }, "On a page of its own"))),
      paths(plan),
      candidates(plan, (relay) => addressOf({ ...request, relays: relay }), all),
      frontier(plan, (point) => go(to(point)), (point) => addressOf(to(point))), rests(plan, links.filter(Boolean)),
    ],
  };
}
