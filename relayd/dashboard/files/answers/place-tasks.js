// On which VM to run which task.

import { element, sortable } from "../shared/dom.js";
import { count, duration, figure, volume } from "../shared/format.js";
import { bar, tag } from "../shared/parts.js";
import { advice, basis, costOf, widePanel } from "./parts.js";
import { verdictPanel } from "./verdict.js";

export function spoken(plan) {
  const used = plan.vms.filter((vm) => vm.tasks.length).length;
  return `${count(Object.keys(plan.assignment).length)} tasks on ${used} of ${plan.vms.length} VMs`;
}

const machines = (plan) => widePanel("machines", "VMs", sortable("What each VM runs and sends", [
  { title: "VM", value: (vm) => vm.id },
  { title: "Region", value: (vm) => vm.region },
  { title: "Tasks", value: (vm) => vm.tasks.length, shown: (vm) => element("span", { class: "row" }, vm.tasks.map((task) => tag(task, ""))) },
  { title: "CPUs", number: true, value: (vm) => vm.cpus_used / vm.cpus, shown: (vm) => element("span", { class: "barred" },
    bar(vm.cpus_used / vm.cpus, `CPUs of ${vm.id} in use`), element("span", { class: "figures" }, `${figure(vm.cpus_used)} of ${figure(vm.cpus)}`)) },
  { title: "Sends", number: true, value: (vm) => vm.sent_gb, shown: (vm) => volume(vm.sent_gb) },
  { title: "Receives", number: true, value: (vm) => vm.received_gb, shown: (vm) => volume(vm.received_gb) },
  { title: "Busy", number: true, value: (vm) => vm.busy_s, shown: (vm) => duration(vm.busy_s) },
  { title: "Limit", value: (vm) => vm.limit || "–" },
], plan.vms, { order: 6, descending: true }));

export function shown(plan, { commands }) {
  return {
    head: verdictPanel(plan, {
      kind: "direct", mark: "▦", title: spoken(plan), ends: `${volume(plan.moved_gb + plan.local_gb)} to exchange`,
      headline: [
        ["Time", duration(plan.duration_s), plan.proven ? "none is quicker, proven" : `not before ${duration(plan.bound_s)}, proven`],
        costOf(plan), ["Between VMs", volume(plan.moved_gb), `${volume(plan.local_gb)} stay inside one`],
        ["Greedy rule", duration(plan.greedy_s), "what it reaches alone"],
      ],
    }),
    body: [machines(plan), advice(plan), element("div", { class: "stack" }, commands, basis(plan))],
  };
}
