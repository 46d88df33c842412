// On which VM to run which task.

import { element, number, sortable, words } from "../shared/dom.js";
import { count, duration, figure, volume } from "../shared/format.js";
import { barred, tag, widePanel } from "../shared/parts.js";
import { advice, basis, costOf, verdictPanel } from "./parts.js";

export function spoken(plan) {
  const used = plan.vms.filter((vm) => vm.tasks.length).length;
  return `${count(Object.keys(plan.assignment).length)} tasks on ${used} of ${plan.vms.length} VMs`;
}

const machines = (plan) => widePanel("machines", "VMs", sortable("What each VM runs and sends", [
  words("VM", "id"),
  words("Region", "region"),
  words("Tasks", "tasks", (tasks) => element("span", { class: "row" }, tasks.map((task) => tag(task, "")))),
  number("CPUs", (vm) => vm.cpus_used / vm.cpus, (share, vm) => barred(share, `CPUs of ${vm.id} in use`, `${figure(vm.cpus_used)} of ${figure(vm.cpus)}`)),
  number("Sends", "sent_gb", volume),
  number("Receives", "received_gb", volume),
  number("Busy", "busy_s", duration),
  words("Limit", (vm) => vm.limit || "–"),
], plan.vms, { order: 6, descending: true }));

export const shown = (plan, { commands }) => ({
  head: verdictPanel(plan, {
    kind: "direct", mark: "▦", title: spoken(plan), ends: `${volume(plan.moved_gb + plan.local_gb)} to exchange`,
    headline: [
      ["Time", duration(plan.duration_s), plan.proven ? "none is quicker, proven" : `not before ${duration(plan.bound_s)}, proven`],
      costOf(plan), ["Between VMs", volume(plan.moved_gb), `${volume(plan.local_gb)} stay inside one`],
      ["Greedy rule", duration(plan.greedy_s), "what it reaches alone"],
    ],
  }),
  body: [machines(plan), advice(plan), commands, basis(plan)],
});
