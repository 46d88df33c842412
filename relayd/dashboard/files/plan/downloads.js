// An answer as files: its JSON, and a transfer's plan as what a tool runs.

import { post } from "../shared/api.js";
import { element } from "../shared/dom.js";
import { show } from "../shared/shell.js";

function save(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: address, download: name }).click();
  // The browser reads it after this.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

// What a plan can be run by, and the file that it reads.
const TOOLS = {
  haproxy: "haproxy.cfg", socat: "socat.sh", iperf3: "iperf3.sh", rclone: "rclone.sh", "aws-cli": "aws-cli.sh", azcopy: "azcopy.sh",
  gcloud: "gcloud.sh", "storage-transfer": "storage-transfer.sh", datasync: "datasync.sh", skyplane: "skyplane.sh", env: "plan.env",
};

function scripts(plan) {
  const tool = element("select", { "aria-label": "Tool" }, Object.keys(TOOLS).map((name) => element("option", { value: name }, name)));
  const fetched = () => show(async () => save(TOOLS[tool.value], (await post("v1/plans/scripts", { plan, emit: tool.value })).script, "text/plain"));
  return element("span", { class: "row" }, button("Download for", fetched), tool);
}

const button = (title, click) => element("button", { type: "button", on: { click } }, title);

export function downloads(plan, question) {
  const json = button("Download JSON", () => save(`${question}-${plan.plan_id}.json`, JSON.stringify(plan, null, 1), "application/json"));
  return element("div", { class: "row downloads" }, json, question === "transfer" && scripts(plan));
}
