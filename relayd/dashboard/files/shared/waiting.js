// An answer that takes its time is said to be on its way, with a button that gives it up; Escape does
// so, too.

import { element, replace } from "./dom.js";

const SLOW_MS = 500;

// part: where it is said. Returns begin(onCancel), which returns end(): the answer, or a problem, has come.
export function waiting(part) {
  let stop = () => {};
  const cancel = element("button", { type: "button", on: { click: () => stop() } }, "Cancel");
  addEventListener("keydown", (event) => event.key === "Escape" && part.hasChildNodes() && stop());
  return (onCancel) => {
    const show = () => replace(part, element("p", { class: "waiting", role: "status" }, "Waiting for the answer …", cancel));
    const timer = setTimeout(show, SLOW_MS);
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
