// An empty store: three ways to fill it, each one click or a command to copy.

import { copyable } from "../shared/copying.js";
import { element } from "../shared/dom.js";

const COMMANDS = {
  measure: "relayd probe --fleet fleet.toml --budget 20usd",
  take: "relayd import csv measurements.csv",
  lab: "relayd measure lab up",
};

const command = (text) => element("div", { class: "command" }, copyable(text, { title: "Copy", label: "Command",
  said: (isCopied, button) => { button.textContent = isCopied ? "Copied" : "Press Ctrl+C"; } }));

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
