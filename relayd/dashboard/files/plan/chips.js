// What a name fits, below its field: links to the same question with each of the regions.

import { post } from "../shared/api.js";
import { element, replace } from "../shared/dom.js";
import { duration, usd } from "../shared/format.js";
import { FIELDS, QUESTION } from "./fields.js";
import { question } from "./request.js";

const MOST_PRICED = 4;

const placeFor = (name) => document.getElementById(`option-${name}-chips`);
const providerOf = (id) => id.split(":")[0];

export function clearChips() {
  for (const field of FIELDS.values()) if (field.control === "region") replace(placeFor(field.name));
}

// What an answer, or a problem, says that names may mean: [field, regions, the one taken].
function meant(request, { resolutions = [] }, { field, content } = {}) {
  const regions = content?.matches ?? content?.near;
  if (regions?.length) return [[field, regions, null]];
  return [...FIELDS.values()].filter(({ control }) => control === "region").flatMap(({ name }) => {
    const found = resolutions.find((each) => each.others.length && each.name === request[name]?.trim());
    return found ? [[name, [found.region_id, ...found.others], found.region_id]] : [];
  });
}

const priced = (chip, plan) => chip.append(" ", element("small", {}, `${usd(plan.cost_usd.total)}, ${duration(plan.duration_s)}`));

// One region of each provider first, then all. Once the answer is shown, a few are priced by one request, which
// the next question gives up.
export async function showChips(request, answer, problem, { addressOf, signal }) {
  const open = [];
  for (const [name, regions, taken] of meant(request, answer, problem)) {
    if (FIELDS.get(name)?.control !== "region") continue;
    const chip = (region) => {
      const asked = { ...request, [name]: region };
      const made = element("a", { class: "chip", href: addressOf(asked), "aria-current": region === taken ? "true" : null }, region);
      if (region === taken) priced(made, answer);
      else open.push([asked, made]);
      return made;
    };
    const isFirst = (region, at) => regions.findIndex((other) => providerOf(other) === providerOf(region)) === at;
    const [first, rest] = [regions.filter(isFirst), regions.filter((region, at) => !isFirst(region, at))];
    replace(placeFor(name), first.map(chip), rest.length > 0 && element("details", {},
      element("summary", {}, `all ${regions.length}`), rest.map(chip)));
  }
  const few = open.slice(0, MOST_PRICED);
  if (QUESTION.name !== "transfer" || !few.length) return;
  const plans = few.map(([asked]) => question({ ...asked, frontier: "false", candidates: "1" }).content);
  const { results } = await post("v1/plans/batch", { plans }, { signal }).catch(() => ({ results: [] }));
  // What has no plan has no price.
  results.forEach(({ plan }, at) => plan && priced(few[at][1], plan));
}
