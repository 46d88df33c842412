// An empty store: three ways to fill it, each one click or a command to copy.

import { copy } from "../shared/copying.js";
import { element } from "../shared/dom.js";

const COMMANDS = {
  measure: "relayd probe --fleet fleet.toml --budget 20usd",
  take: "relayd import csv measurements.csv",
  lab: "relayd measure lab up",
};

function command(text) {
  const code = element("code", {}, text);
  const button = element("button", { type: "button", "aria-label": `Copy ${text}`, on: { click: async () => {
    button.textContent = (await copy(text, code)) ? "Copied" : "Press Ctrl+C";
  } } }, "Copy");
  return element("div", { class: "command" }, element("pre", { tabindex: "0", "aria-label": "Command" }, code), button);
}

const beginning = (title, text, ...action) => element("li", { class: "panel" }, element("h3", {}, title), element("p", {}, text), action);

export function beginnings(fleet) {
  return [
    element("h2", {}, "Nothing is measured yet: three ways to begin"),
    element("p", { class: "muted" }, "Answers above already work. Until you measure, they rest on the baseline: models fitted to open measurements, with wide bounds."),
    element("ol", { class: "beginnings" },
      beginning("Measure your own VMs", "relayd logs in by SSH to the VMs of a fleet file, and asks for a budget before it sends anything.",
        fleet.may_start_campaigns ? element("a", { class: "button", href: "campaigns" }, "Price a campaign") : command(COMMANDS.measure)),
      beginning("Import what you have", "Results of iperf3, nuttcp, ping, Smokeping and others, or a CSV file.", command(COMMANDS.take)),
      beginning("Try it on one machine", "Forty emulated regions with real TCP; it prints the fleet file to measure them with. Needs Linux.", command(COMMANDS.lab))),
  ];
}
