// The head of every answer: what to do and why, with its figures in a line.

import { element } from "../shared/dom.js";
import { withCode } from "../shared/parts.js";

// headline: [name, value, what stands below it].
export function verdictPanel(answer, { kind, ends, mark, title, headline }) {
  return element("section", { class: `panel verdict verdict-${kind}`, "aria-labelledby": "verdict" },
    answer.outdated.map((text) => element("p", { class: "outdated", role: "alert" }, withCode(text))),
    element("p", { class: "ends muted" }, ends),
    element("h2", { id: "verdict", class: "badge" }, element("span", { class: "mark", "aria-hidden": "true" }, mark), title),
    element("p", { class: "reason" }, answer.reason),
    element("ul", { class: "headline" }, headline.map(([name, value, more]) => element("li", {},
      element("span", { class: "muted" }, name), element("strong", {}, value), element("small", { class: "muted" }, more)))),
    answer.confidence && element("p", { class: "muted" }, answer.confidence));
}
