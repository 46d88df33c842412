// Keeps a page up to date by server-sent events; where the stream breaks, it asks every ten seconds
// until the stream is back. What the page is kept up to date by is said in a line.

import { events } from "./api.js";
import { element, replace } from "./dom.js";

export const POLL_MS = 10000;

// The service takes up a new snapshot, or the end of a campaign's process, a moment after its event.
const AGAIN_MS = [1000, 3000];

const STATES = {
  connecting: ["muted", "○", "Connecting to the stream of events …"],
  live: ["good", "●", "Live: what happens appears here by itself."],
  polling: ["warn", "◌", `The stream of events broke: asked again every ${POLL_MS / 1000} s until it is back.`],
};

export function stateLine() {
  return element("p", { class: "live", role: "status" });
}

function tell(line, state) {
  const [kind, mark, text] = STATES[state];
  line.dataset.state = state;
  replace(line, element("span", { class: kind, "aria-hidden": "true" }, mark), ` ${text}`);
}

// Asks now, and again when what an event tells of is sure to have been taken up.
export function soon(renew) {
  renew();
  for (const wait of AGAIN_MS) setTimeout(renew, wait);
}

// refresh: asks for everything again; called at first, after each gap of the stream, and by whoever
// was given the function that this returns. heard({ kind, data }): called with each event.
export function keepFresh(line, refresh, heard) {
  let timer = null;
  let connected = null;
  let running = false;
  let wanted = false;
  // One at a time: what is wanted meanwhile is one more, not many.
  async function renew() {
    wanted = true;
    if (running) return;
    running = true;
    while (wanted) {
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
