// What every page has: theme, token, messages, the snapshot that its figures rest on, and what
// keeps it up to date.

import { events, isSignedIn, onUnauthorized, signOut } from "./api.js";
import { button, element, replace, small } from "./dom.js";
import { ago } from "./format.js";

export const content = document.getElementById("content");
const message = document.getElementById("message");
const themes = document.getElementById("theme");
const signInLink = document.getElementById("sign-in");
const signOutButton = document.getElementById("sign-out");

export const say = (...said) => replace(message, said.some(Boolean) && element("p", {}, said));

// A problem is said in one sentence, where a screen reader hears it.
export function fail(error) {
  if (error.name === "AbortError") return;
  replace(message, element("p", { class: "problem" }, error.message, error.requestId && small(` (request ${error.requestId})`)));
}

// While a page opens, it says what it waits for; later, what it renews by itself is not worth a word.
const SLOW_MS = 500;
let [opening, isOpen, timer] = [0, false, 0];
const waits = element("p", { class: "waiting" }, "Waiting for the service …");

// Runs a part of a page; what goes wrong is said, never left in the console alone.
export async function show(part) {
  opening += 1;
  timer ||= setTimeout(() => !isOpen && message.append(waits), SLOW_MS);
  try {
    replace(message, waits.isConnected && waits); // what was said before is over, waiting is not
    return await part();
  } catch (error) {
    return fail(error);
  } finally {
    opening -= 1;
    isOpen ||= opening === 0;
    if (isOpen) waits.remove();
  }
}

// What an empty store says, with the commands that fill it.
export const emptyState = (title, ...children) =>
  element("section", { class: "empty" }, element("h2", {}, title), children);

export function restsOn({ id, source, as_of: newest }) {
  const at_s = Date.parse(newest) / 1000;
  document.getElementById("snapshot").textContent = `Snapshot ${id}${source === "baseline" ? ": models and the catalogue, no measurement"
    : Number.isNaN(at_s) ? "" : `, newest measurement ${ago(at_s)}`}`;
}

// The entry of the menu, and the view, that this page is.
const links = [...document.querySelectorAll(".views a, .gear a, .top nav a")];
const isHere = (link) => link.pathname === location.pathname;
for (const link of links.filter(isHere)) link.setAttribute("aria-current", "page");
if (links.some((link) => isHere(link) && link.closest(".views"))) {
  links.find((link) => link.closest(".top nav") && link.pathname.endsWith("/campaigns")).setAttribute("aria-current", "page");
}

// Told when colours change, so that charts can be drawn again; returns what ends that.
const redrawn = new Set();
export const onTheme = (draw) => redrawn.add(draw) && (() => redrawn.delete(draw));
const redraw = () => redrawn.forEach((draw) => draw());
// A colour of the theme that is shown, for what is drawn without styles.
const swatch = document.head.appendChild(element("i"));
export function colour(name) {
  swatch.style.color = `var(--${name})`;
  return getComputedStyle(swatch).color;
}

themes.value = document.documentElement.dataset.theme ?? "";
themes.addEventListener("change", () => {
  document.documentElement.dataset.theme = themes.value;
  try {
    localStorage.setItem("relayd-theme", themes.value);
  } catch {
    // storage may be forbidden; the choice then holds for this page
  }
  redraw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

// An address holds all that a page shows, so whoever has signed in comes back to the same.
const signInAddress = () =>
  `${signInLink.href}#${new URLSearchParams({ next: `${location.pathname}${location.search}${location.hash}` })}`;
onUnauthorized(() => location.replace(signInAddress()));
signInLink.addEventListener("click", (event) => {
  event.preventDefault();
  location.assign(signInAddress());
});
// For a page that asks for nothing by itself.
export const offerSignIn = () => { signInLink.hidden = false; };
if (isSignedIn()) {
  replace(signInLink, "Token");
  signInLink.hidden = signOutButton.hidden = false;
}
signOutButton.addEventListener("click", () => show(async () => {
  await signOut();
  const target = new URL(`${signInLink.href}#signed-out`);
  const isHere = target.pathname === location.pathname;
  location.assign(target);
  if (isHere) location.reload(); // another # alone loads nothing
}));
// Going back shows a page as it was left, perhaps by somebody who has signed out since.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

// Keeps a page up to date by server-sent events; where the stream breaks, it asks every ten seconds
// until the stream is back. What the page is kept up to date by is said in a line.

const POLL_MS = 10000;

// The service takes up a new snapshot, or the end of a campaign's process, a moment after its event.
const AGAIN_MS = [1000, 3000];

const STATES = {
  connecting: ["muted", "○", "Connecting to the stream of events …"],
  live: ["good", "●", "Live: what happens appears here by itself."],
  polling: ["warn", "◌", `The stream of events broke: asked again every ${POLL_MS / 1000} s until it is back.`],
};

function tell(line, state) {
  const [kind, mark, text] = STATES[state];
  line.dataset.state = state;
  replace(line, element("span", { class: kind, "aria-hidden": "true" }, mark), ` ${text}`);
}

// Asks now, and again when what an event tells of is sure to have been taken up.
export const soon = (renew) => [0, ...AGAIN_MS].forEach((wait_ms) => setTimeout(renew, wait_ms));

// refresh: asks for everything again; called at first, after each gap of the stream, and by whoever
// was given the function that this returns. heard({ kind, data }): called with each event.
export function keepFresh(line, refresh, heard) {
  let [timer, connected, running, wanted] = [null, null, false, false];
  // One at a time: what is wanted meanwhile is one more, not many.
  async function renew() {
    wanted = true;
    if (running) return;
    for (running = true; wanted;) {
      wanted = false;
      await refresh();
    }
    running = false;
  }
  tell(line, "connecting");
  events((event) => heard(event, renew), (now) => {
    if (now === connected) return;
    connected = now;
    clearInterval(timer);
    if (!now) timer = setInterval(renew, POLL_MS);
    tell(line, now ? "live" : "polling");
    renew();
  });
  return renew;
}

// An answer that takes its time is said to be on its way, with a button that gives it up; Escape does
// so, too.

const WAITS_MS = 500;

// part: where it is said. Returns begin(onCancel), which returns end(): the answer, or a problem, has come.
export function waiting(part) {
  let stop = () => {};
  const cancel = button("Cancel", () => stop());
  addEventListener("keydown", (event) => event.key === "Escape" && part.hasChildNodes() && stop());
  return (onCancel) => {
    const show = () => replace(part, element("p", { class: "waiting", role: "status" }, "Waiting for the answer …", cancel));
    const timer = setTimeout(show, WAITS_MS);
    const end = () => {
      clearTimeout(timer);
      if (stop === given) replace(part);
    };
    const given = () => {
      end();
      onCancel();
    };
    stop = given;
    return end;
  };
}
