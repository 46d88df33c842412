// What changes something is done by a second button, below what it will do.

import { element, replace } from "./dom.js";
import { fail, say } from "./shell.js";

// title: of the button that shows what it does; verb: of the one that does it; what: text or
// elements, or a function that asks for them. act(done) does it, and may say how it ended by
// done(text or elements).
export function asksTwice(title, verb, what, act) {
  const place = element("div", { class: "asks" });
  const ask = element("button", { type: "button", on: { click: () => guarded(ask, show) } }, title);

  // One click at a time; what goes wrong is said.
  async function guarded(button, work) {
    button.disabled = true;
    try {
      say("");
      await work();
    } catch (error) {
      fail(error);
    } finally {
      button.disabled = false;
    }
  }
  async function show() {
    const told = typeof what === "function" ? await what() : element("p", {}, what);
    const go = element("button", { type: "button", class: "main", on: {
      click: () => guarded(go, () => act((...said) => replace(place, element("p", { role: "status" }, said)))),
    } }, verb);
    const back = element("button", { type: "button", on: { click: () => {
      replace(place, ask);
      ask.focus();
    } } }, "Leave it");
    const box = element("div", { class: "consent", role: "group", "aria-label": title, tabindex: "-1" },
      told, element("div", { class: "row" }, go, back));
    replace(place, box);
    box.focus(); // not the button: pressing Enter twice is to change nothing
  }
  return replace(place, ask);
}
