// Tokens: who may do what, since when and until when, and when each was used; never a token itself.

import {
  cardTable, commands, content, element, emptyState, figure, get, may, muted, needsScope, number, replace, restsOn, show,
  since, tag, when, words,
} from "../shared/kit.js";

const KINDS = { valid: "good", expired: "warn", revoked: "muted" };
const CREATE = "relayd serve token create NAME --scope read --scope plan --expires 90d";
const SOON_S = 14 * 86400;

async function refresh() {
  if (!(await may("admin"))) return void replace(content, needsScope("The list of tokens", "admin"));
  const { snapshot, tokens, ...usual } = await get("v1/tokens");
  restsOn(snapshot);
  if (!tokens.length) {
    return void replace(content, emptyState("This store has no tokens",
      element("p", {}, "The service was started with --no-auth: everybody on this machine may do everything. Without it, the "
        + "first start makes one. Make one for each program, with the scopes that it needs:"), commands(CREATE)));
  }
  const order = Object.keys(KINDS);
  tokens.sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || a.number - b.number);
  const of = (own, ofAll) => {
    const [most, note] = own === null ? [ofAll, " (as all)"] : [own, ""];
    return `${most ? figure(most) : "no limit"}${note}`;
  };
  return void replace(content, cardTable("tokens", "The tokens of this service, without their secrets: those that are valid first", [
    words("Token", ({ number: at, name }) => [`${at} `, name]), words("State", "state", (state) => tag(state, KINDS[state])),
    words("May", ({ scopes }) => scopes.join(", ")), words("Made", "created_at_s", date, "time"),
    words("Last used", "last_used_at_s", (at_s) => since(at_s), "time"), words("Expires", expiry, undefined, "time"),
    number("Requests/s", ({ requests_per_s: own }) => of(own, usual.requests_per_s)),
    number("Series", ({ series, max_series: own }) => `${figure(series)} of ${of(own, usual.max_series)}`),
  ], tokens, { key: (token) => token.number }),
  muted("Tokens are made and revoked on the store, by their number:"), commands(`${CREATE}\nrelayd serve token revoke NUMBER`));
}

const date = (at_s) => element("span", { title: when(at_s) }, when(at_s).slice(0, 10));

function expiry({ expires_at_s: at_s, revoked_at_s: revoked, state }) {
  if (revoked !== null) return ["revoked ", date(revoked)];
  if (at_s === null) return "never";
  const isSoon = state === "valid" && at_s < Date.now() / 1000 + SOON_S;
  return isSoon ? element("span", { class: "warn" }, date(at_s), " (soon)") : date(at_s);
}

show(refresh);
