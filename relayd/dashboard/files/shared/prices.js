// Prices that are over a year old are named, with the command that renews them, wherever money is shown.

import { get } from "./api.js";
import { element } from "./dom.js";
import { withCode } from "./parts.js";

export const oldPriceNotes = (texts) => texts.map((text) => element("p", { class: "aging", role: "alert" }, withCode(text)));

let asked = null;
// For pages that don't show the overview's other figures; asked once a page.
export async function oldPrices() {
  asked ??= get("v1/overview").catch((error) => {
    asked = null;
    throw error;
  });
  return oldPriceNotes((await asked).knowledge.old_prices);
}
