// Signing in: a token is typed once, checked, and kept by the browser as a cookie that no script reads,
// until it is closed or its reader signs out. Who is signed in sees what the token allows.

import {
  Problem, content, element, facts, fail, get, isSignedIn, isSignedOut, link, onUnauthorized, replace, restsOn, say, show,
  signIn, signOut, tag, when, withCode,
} from "../shared/kit.js";

const SCOPES = [
  ["read", "see what is known: every page needs it"],
  ["plan", "ask questions"],
  ["ingest", "send samples"],
  ["probe", "start and stop campaigns, which cost money"],
  ["admin", "decide about samples, see all tokens, and all of the above"],
];

onUnauthorized(null); // here is where others are sent to

// Only to pages of this service, whatever an address may say.
function next() {
  const given = new URLSearchParams(location.hash.slice(1)).get("next") ?? "./";
  const target = URL.canParse(given, location.href) ? new URL(given, location.href) : null;
  return target?.origin === location.origin && target.protocol === location.protocol ? target : new URL("./", location.href);
}

function form() {
  const field = element("input", { type: "password", name: "token", id: "token-field", autocomplete: "off", spellcheck: "false",
    required: true, size: 50, "aria-describedby": "token-help" });
  const send = element("button", { type: "submit", class: "main" }, "Sign in");
  async function submit(event) {
    event.preventDefault();
    send.disabled = true;
    await show(async () => {
      await signIn(field.value.trim());
      await get("v1/token").catch((error) => {
        throw error.status === 401 ? new Problem(401, { detail: "This browser keeps no cookie of this service, so it can't be signed in." }) : error;
      });
      location.replace(next());
    });
    send.disabled = false;
    if (document.querySelector("#message .problem")) field.focus();
  }
  replace(content, element("form", { class: "panel", on: { submit } },
    element("label", { for: "token-field" }, "Token"), element("div", { class: "row" }, field, send),
    element("p", { id: "token-help", class: "muted" }, "relayd says how to move data between cloud regions: direct or relayed, how long, at what cost. Ask whoever runs this service for a token: ",
      element("code", {}, "relayd serve token create NAME"), " makes one, and the first start prints one. This browser keeps it until it is closed, or until you sign out.")));
  field.focus();
}

function signedIn({ token, scopes, snapshot }) {
  restsOn(snapshot);
  const may = facts(SCOPES.map(([scope, meaning]) => [element("code", {}, scope),
    [scopes.includes(scope) ? tag("yes", "good") : tag("no", "muted"), ` ${meaning}`]]));
  replace(content, element("section", { class: "panel" },
    element("h2", {}, token ? `Token ${token.number}: ${token.name}` : "This service needs no token"),
    token ? facts([["Expires", token.expires_at_s === null ? "never" : when(token.expires_at_s)]]) : element("p", {}, withCode("It was started with `--no-auth`: everybody on its machine may do everything.")),
    element("h3", {}, "What you may do"), may,
    element("p", {}, link(next().href, "Go on"))));
}

// The link that a first start prints: its token is taken, and does not stay in the address.
const target = next();
const [, given] = target.hash.match(/^#token=(.+)$/) ?? [];
if (given) {
  target.hash = "";
  await signIn(given).then(() => location.replace(target), fail);
}
if (location.hash === "#signed-out") say("You are signed out: this browser has forgotten the token.");
try {
  if (isSignedOut()) form();
  else signedIn(await get("v1/token"));
} catch (error) {
  if (isSignedIn() || error.status !== 401) fail(error);
  if (error.status === 401 || error.status === 403) {
    if (isSignedIn()) await signOut();
    form();
  }
}
