// Texts to copy: tabs, of which one shows, each with a button.

import { element } from "./dom.js";

// Says in a live region whether it was copied. Without the clipboard (plain HTTP from another
// machine), the text is selected and copied the old way.
async function copy(text, source) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const range = document.createRange();
    range.selectNodeContents(source);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    return document.execCommand("copy");
  }
}

// A text and the button that copies it, which says how that went: said(was it copied).
export function copyable(text, { title, label, said }) {
  const code = element("code", {}, text);
  const button = element("button", { type: "button", on: { click: async () => said(await copy(text, code), button) } }, title);
  return [element("pre", { tabindex: "0", "aria-label": label }, code), button];
}

// texts: [[title, text]]; label: what they are.
export function copyTabs(label, texts) {
  const said = element("span", { class: "copied good", role: "status", "aria-live": "polite" });
  const id = (at) => `copy-${label.toLowerCase().replaceAll(/\W+/g, "-")}-${at}`;
  const panels = texts.map(([title, text], at) => element("div", { role: "tabpanel", id: id(at), "aria-labelledby": `${id(at)}-tab` },
    copyable(text, { title: `Copy ${title}`, label: `${title}: text`, said: (isCopied) => {
      said.textContent = isCopied ? "copied" : "selected: press Ctrl+C";
    } })));
  const tabs = texts.map(([title], at) => element("button", {
    type: "button", role: "tab", id: `${id(at)}-tab`, "aria-controls": id(at), on: { click: () => choose(at), keydown: (event) => move(event, at) },
  }, title));

  function choose(chosen) {
    tabs.forEach((tab, at) => {
      tab.setAttribute("aria-selected", String(at === chosen));
      tab.tabIndex = at === chosen ? 0 : -1;
      panels[at].hidden = at !== chosen;
    });
    said.textContent = "";
  }
  function move(event, at) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (at + step + tabs.length) % tabs.length;
    choose(next);
    tabs[next].focus();
  }
  choose(0);
  return element("div", { class: "copy-tabs" },
    element("div", { class: "row" }, element("div", { role: "tablist", "aria-label": label }, tabs), said), panels);
}
