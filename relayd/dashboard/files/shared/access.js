// What the reader's token allows. What it does not allow is not offered, and the scope is named.

import { get } from "./api.js";
import { element } from "./dom.js";

let asked = null;
// The caller's token and scopes, asked once a page.
export function ownToken() {
  asked ??= get("v1/token").catch((error) => {
    asked = null;
    throw error;
  });
  return asked;
}

export const may = async (scope) => (await ownToken()).scopes.includes(scope);

// needsScope("Stopping a campaign", "probe")
export const needsScope = (what, scope) => element("p", { class: "muted" }, `${what} needs a token with the scope `, element("code", {}, scope), ".");
