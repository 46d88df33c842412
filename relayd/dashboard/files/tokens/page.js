// Tokens: who may do what, since when and until when, and when each was used; never a token itself.

import {
  cardTable, commands, content, element, emptyState, figure, get, may, needsScope, replace,
  restsOn, show, since, tag, when,
} from "../shared/kit.js";

const HEADS = [["Token"], ["State"], ["May"], ["Made"], ["Last used"], ["Expires"], ["Requests/s", "number"], ["Series", "number"]];
const KINDS = { valid: "good", expired: "warn", revoked: "muted" };
const SOON_S = 14 * 86400;

async function refresh() {
  if (!(await may("admin"))) {
    replace(content, needsScope("The list of tokens", "admin"));
    return;
  }
  const found = await get("v1/tokens");
  restsOn(found.snapshot);
  if (!found.tokens.length) {
    replace(content, emptyState("This store has no tokens",
      element("p", {}, "The service was started with --no-auth: everybody on this machine may do everything. Without it, the first start makes one. Make one for each program, with the scopes that it needs:"),
      commands("relayd serve token create NAME --scope read --scope plan --expires 90d")));
    return;
  }
  const order = ["valid", "expired", "revoked"];
  const sorted = [...found.tokens].sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || a.number - b.number);
  replace(content, cardTable("tokens", "The tokens of this service, without their secrets: those that are valid first", HEADS, sorted.map((token) => row(token, found))),
    element("p", { class: "muted" }, "Tokens are made and revoked on the store, by their number:"),
    commands("relayd serve token create NAME --scope read --scope plan --expires 90d\nrelayd token revoke NUMBER"));
}

function row(token, usual) {
  const of = (own, ofAll) => {
    const [most, note] = own === null ? [ofAll, " (as all)"] : [own, ""];
    return `${most ? figure(most) : "no limit"}${note}`;
  };
  return {
    data: { token: token.number, key: token.number },
    kinds: { 3: "time", 4: "time", 5: "time" },
    cells: [
      [`${token.number} `, token.name],
      tag(token.state, KINDS[token.state]),
      token.scopes.join(", "),
      date(token.created_at_s),
      since(token.last_used_at_s),
      token.revoked_at_s !== null ? ["revoked ", date(token.revoked_at_s)] : expiry(token),
      of(token.requests_per_s, usual.requests_per_s),
      `${figure(token.series)} of ${of(token.max_series, usual.max_series)}`,
    ],
  };
}

const date = (at_s) => element("span", { title: when(at_s) }, when(at_s).slice(0, 10));

function expiry({ expires_at_s: at_s, state }) {
  if (at_s === null) return "never";
  const isSoon = state === "valid" && at_s < Date.now() / 1000 + SOON_S;
  return isSoon ? element("span", { class: "warn" }, date(at_s), " (soon)") : date(at_s);
}

show(refresh);
