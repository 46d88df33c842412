// Names of places: a list of regions and aliases to choose from, and the note of an empty store.

import { get } from "./api.js";
import { element } from "./dom.js";
import { commands } from "./parts.js";
import { emptyState } from "./shell.js";

let known = null;
// Regions and aliases, asked once a page.
export function places() {
  known ??= get("v1/regions").catch((error) => {
    known = null;
    throw error;
  });
  return known;
}

// A datalist of what a region may be called; words come first ("any", "none").
export function nameList(id, { regions, aliases }, words = []) {
  const listed = (members) => `alias: ${members.slice(0, 3).join(", ")}${members.length > 3 ? ", ..." : ""}`;
  return element("datalist", { id },
    words.map((word) => element("option", { value: word })),
    Object.entries(aliases).map(([alias, members]) => element("option", { value: alias, label: listed(members) })),
    regions.map((region) => element("option", { value: region.id, label: [region.city, region.country].filter(Boolean).join(", ") })));
}

// Said wherever figures come from models because nothing was measured.
export const baselineNote = (snapshot) => snapshot.source === "baseline" && emptyState("Nothing is measured yet",
  element("p", {}, "These figures come from the baseline: models of backbones, windows and caps, not your VMs. Bounds are wide. Try it out on this machine, measure with your own VMs, or import what was measured before:"),
  commands("relayd measure lab up\nrelayd probe --fleet fleet.toml --budget 20usd\nrelayd import csv measurements.csv"));
