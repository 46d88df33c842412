// The ask bar: from, to and how much in one line; the answer in place. The address is the question.

import { get } from "../shared/api.js";
import { element, replace } from "../shared/dom.js";
import { pairAddress } from "../shared/pairs.js";
import { nameList, places } from "../shared/places.js";
import { verdict } from "../transfer/answer.js";
import { verdictText } from "../transfer/figures.js";
import { fail, say } from "../shared/shell.js";
import { waiting } from "../shared/waiting.js";

const FIELDS = [
  { name: "src", label: "From", hint: "us-east", list: "home-names" },
  { name: "dst", label: "To", hint: "aws:sa-east-1", list: "home-names" },
  { name: "volume_gb", label: "Volume", hint: "500GB, 20TB", list: null, usual: "100GB" },
];

const addressOf = (page, asked) => `${page}?${new URLSearchParams(asked)}`.replaceAll("%3A", ":");
const inAddress = () => Object.fromEntries(FIELDS.map(({ name }) => [name, new URLSearchParams(location.search).get(name) ?? ""]));

function field({ name, label, hint, list }) {
  const input = element("input", {
    id: `ask-${name}`, name, type: "text", list, placeholder: hint, autocomplete: "off", spellcheck: "false",
    "aria-describedby": `ask-${name}-problem`,
  });
  const problem = element("p", { class: "field-problem bad", id: `ask-${name}-problem` });
  const made = element("div", { class: `field field-${name}` }, element("label", { for: input.id }, label), input, problem);
  return { input, problem, made };
}

export function askForm() {
  const fields = new Map(FIELDS.map((each) => [each.name, field(each)]));
  const answer = element("div", { class: "answer" });
  const spoken = element("p", { class: "hidden-text", role: "status", "aria-live": "polite" });
  const names = element("div");
  const swap = element("button", {
    type: "button", class: "swap", "aria-label": "Swap source and destination", title: "Swap", on: { click: swapEnds },
  }, "⇄");
  const [src, dst, volume] = [...fields.values()];
  const form = element("form", { class: "ask panel", "aria-label": "Ask for a plan", novalidate: true, on: { submit } },
    src.made, swap, dst.made, volume.made, element("button", { type: "submit", class: "main" }, "Ask"));
  const wait = element("div");
  const begun = waiting(wait);
  let asking = new AbortController();

  function swapEnds() {
    [src.input.value, dst.input.value] = [dst.input.value, src.input.value];
  }
  function submit(event) {
    event.preventDefault();
    const asked = Object.fromEntries([...fields].map(([name, { input }]) => [name, input.value.trim()]).filter(([, text]) => text));
    history.pushState(null, "", addressOf("./", asked));
    ask(asked);
  }
  function clear() {
    for (const { input, problem } of fields.values()) {
      input.removeAttribute("aria-invalid");
      replace(problem);
    }
    spoken.textContent = "";
    say("");
  }

  async function ask(asked) {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    clear();
    answer.setAttribute("aria-busy", "true");
    const ended = begun(() => {
      asking.abort();
      replace(answer);
      answer.removeAttribute("aria-busy");
      say("Cancelled: the question is still in the form.");
      form.querySelector("button.main").focus();
    });
    try {
      const plan = await get("v1/plans", asked, { signal });
      replace(answer, verdict(plan), element("p", { class: "row links" },
        element("a", { href: addressOf("plan", asked) }, "The whole plan"),
        element("a", { href: addressOf("map", asked) }, "On the map"),
        element("a", { href: pairAddress(plan.request.src, plan.request.dst) }, "What is known of the pair")));
      spoken.textContent = `${verdictText(plan)}. ${plan.reason}`;
    } catch (error) {
      if (error.name === "AbortError") return;
      replace(answer);
      const wrong = fields.get(error.field);
      if (wrong) {
        // The field says its name by itself.
        replace(wrong.problem, error.message.replace(/^[\w.]+: /, ""));
        wrong.input.setAttribute("aria-invalid", "true");
        wrong.input.focus();
        spoken.textContent = error.message;
      } else fail(error);
    } finally {
      ended();
      if (!signal.aborted) answer.removeAttribute("aria-busy");
    }
  }

  function showAddress() {
    const asked = inAddress();
    for (const { name, usual = "" } of FIELDS) fields.get(name).input.value = asked[name] || usual;
    if (asked.src && asked.dst) return ask(Object.fromEntries(Object.entries(asked).filter(([, text]) => text)));
    clear();
    replace(answer);
    return undefined;
  }

  async function start() {
    addEventListener("popstate", showAddress);
    const asking = showAddress();
    replace(names, nameList("home-names", await places()));
    return asking;
  }
  return { part: element("section", { "aria-label": "Ask" }, form, names, spoken, wait, answer), start };
}
