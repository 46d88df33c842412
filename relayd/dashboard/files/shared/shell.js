// What every page has: theme, token, messages, and the snapshot that its figures rest on.

import { isSignedIn, onUnauthorized, signOut } from "./api.js";
import { element, replace } from "./dom.js";
import { ago } from "./format.js";

export const content = document.getElementById("content");
const message = document.getElementById("message");
const themes = document.getElementById("theme");
const signInLink = document.getElementById("sign-in");
const signOutButton = document.getElementById("sign-out");

export function say(...said) {
  replace(message, said.some(Boolean) ? element("p", {}, said) : null);
}

// A problem is said in one sentence, where a screen reader hears it.
export function fail(error) {
  if (error.name === "AbortError") return;
  const id = error.requestId ? element("small", { class: "muted" }, ` (request ${error.requestId})`) : null;
  replace(message, element("p", { class: "problem" }, error.message, id));
}

// While a page opens, it says what it waits for; later, what it renews by itself is not worth a word.
const SLOW_MS = 500;
let [opening, isOpen] = [0, false];
const waits = element("p", { class: "waiting" }, "Waiting for the service …");
setTimeout(() => opening > 0 && message.append(waits), SLOW_MS);

// Runs a part of a page; what goes wrong is said, never left in the console alone.
export async function show(part) {
  if (!isOpen) opening += 1;
  try {
    say("");
    return await part();
  } catch (error) {
    fail(error);
    return undefined;
  } finally {
    if (!isOpen) opening -= 1;
    if (opening === 0) {
      isOpen = true;
      waits.remove();
    }
  }
}

// What an empty store says, with the commands that fill it.
export function emptyState(title, ...children) {
  return element("section", { class: "empty" }, element("h2", {}, title), children);
}

export function restsOn(snapshot) {
  const as_of = Date.parse(snapshot.as_of) / 1000;
  const age = snapshot.source === "baseline" ? ": models and the catalogue, no measurement" : Number.isNaN(as_of) ? "" : `, newest measurement ${ago(as_of)}`;
  document.getElementById("snapshot").textContent = `Snapshot ${snapshot.id}${age}`;
}

// The entry of the menu, and the view, that this page is.
for (const link of document.querySelectorAll(".views a, .gear a, .top nav a")) if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
for (const view of document.querySelectorAll(".views [aria-current]")) {
  document.querySelector(`.top nav .${view.closest("ul").className} a`).setAttribute("aria-current", "page");
}

// Told when colours change, so that charts can be drawn again; returns what ends that.
const redrawn = new Set();
export function onTheme(draw) {
  redrawn.add(draw);
  return () => redrawn.delete(draw);
}
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
  redrawn.forEach((draw) => draw());
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redrawn.forEach((draw) => draw()));

// An address holds all that a page shows, so whoever has signed in comes back to the same.
function signInAddress() {
  const here = `${location.pathname}${location.search}${location.hash}`;
  return `${signInLink.href}#${new URLSearchParams({ next: here })}`;
}
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
