// What changes something is done by a second button, below what it will do.

import { element, replace } from "./dom.js";
import { fail, say } from "./shell.js";

// title: of the button that shows what it does; verb: of the one that does it; what: text or
// elements. act(done) does it, and may say how it ended by done(text or elements).
export function asksTwice(title, verb, what, act) {
  const place = element("div", { class: "asks" });
  const ask = element("button", { type: "button", on: { click: () => {
    const go = element("button", { type: "button", class: "main", on: { click: async () => {
      go.disabled = true;
      try {
        say("");
        await act((...said) => replace(place, element("p", { role: "status" }, said)));
      } catch (error) {
        go.disabled = false;
        fail(error);
      }
    } } }, verb);
    const back = element("button", { type: "button", on: { click: () => {
      replace(place, ask);
      ask.focus();
    } } }, "Leave it");
    const box = element("div", { class: "consent", role: "group", "aria-label": title, tabindex: "-1" },
      element("p", {}, what), element("div", { class: "row" }, go, back));
    replace(place, box);
    box.focus(); // not the button: pressing Enter twice is to change nothing
  } } }, title);
  return replace(place, ask);
}
