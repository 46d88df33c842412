// Hosts by region, and links that are not as usual.

import { cardTable, since, tag, withCode } from "../shared/parts.js";
import { element, replace } from "../shared/dom.js";
import { duration, gbps, mbps, ms, percent, UNKNOWN } from "../shared/format.js";
import { pairLink } from "../shared/pairs.js";

const FIRST = 100;
let whole = false;

const toRecreate = (fleet, host) => fleet.vm_caps.some((cap) => cap.host === host.name && cap.recreate);
// Hosts for which there is something to do: unreachable, or slower than others of their type.
export const advised = (fleet) => fleet.hosts.filter((host) => host.unreachable !== null || toRecreate(fleet, host));

export function showLinks(part, fleet, watch) {
  const links = [...fleet.leg_states].sort((a, b) => Number(b.condition === "down") - Number(a.condition === "down") || a.since.localeCompare(b.since));
  const title = element("h2", {}, "Links down or degraded now");
  if (!links.length) {
    const text = watch ? `All ${watch.legs?.up ? `${watch.legs.up} ` : ""}links that are watched are as usual, or were not judged yet.`
      : "Not looked at: links that fail show only where `relayd measure watch`, or a service with a daily budget, looks at them.";
    replace(part, title, element("p", { class: watch ? null : "muted" }, withCode(text)));
    return;
  }
  replace(part, title, cardTable("links", "Plans go around links that are down, and count degraded ones at what they carry now",
    [["Link"], ["State"], ["Since"], ["What was seen"], ["Now"]], links.map((link) => ({
      kinds: { 2: "time" },
      cells: [
        pairLink(link.src, link.dst), tag(link.condition, link.condition === "down" ? "bad" : "warn"),
        [link.since.replace("T", " "), element("small", { class: "muted" }, forHow(link.since))], link.reason, effect(link),
      ],
    }))));
}

function forHow(since) {
  return `for ${duration(Math.max(0, (Date.now() - Date.parse(since)) / 1000))}`;
}

function effect(link) {
  if (link.condition === "down") return "carries nothing";
  const found = [];
  if (link.rate_share < 1) found.push(`${percent(100 * link.rate_share)} of its usual rate`);
  if (link.loss_share > 0) found.push(`loses ${percent(100 * link.loss_share)} of packets`);
  if (link.rtt_ms !== null) found.push(`round trip ${ms(link.rtt_ms)}`);
  return found.join(", ") || UNKNOWN;
}

export function showHosts(part, fleet, isWatched) {
  if (!fleet.configured) {
    replace(part);
    return;
  }
  if (fleet.problem) {
    replace(part, element("h2", {}, "Hosts by region"), element("p", { class: "problem" }, fleet.problem));
    return;
  }
  // What is in trouble first: of a large fleet only some are shown at once.
  const trouble = (host) => 2 * Number(host.unreachable !== null) + Number(toRecreate(fleet, host));
  const sorted = [...fleet.hosts].sort((a, b) => trouble(b) - trouble(a) || a.region.localeCompare(b.region));
  const shown = whole ? sorted : sorted.slice(0, FIRST);
  const rows = shown.map((host) => ({
    data: { host: host.name, key: host.name },
    cells: [
      host.region,
      [host.name === host.region ? element("span", { class: "muted" }, "same as region") : host.name,
        host.zone && element("small", { class: "muted" }, ` zone ${host.zone}`)],
      host.vm_type || element("span", { class: "muted" }, "not said"),
      reach(host, isWatched),
      vmCaps(fleet.vm_caps.filter((cap) => cap.host === host.name)),
    ],
  }));
  replace(part, element("h2", {}, "Hosts by region"),
    cardTable("hosts", "As the fleet file has them, and what each VM was measured to do",
      [["Region"], ["Host"], ["VM type"], ["Reached"], ["Measured caps of this VM"]], rows),
    shown.length < sorted.length && element("div", { class: "row" }, element("button", { type: "button", on: { click: () => {
      whole = true;
      showHosts(part, fleet, isWatched);
    } } }, `Show all ${sorted.length}`)),
    element("p", { class: "muted" }, withCode("`relayd measure fleet check` logs in to each host and says what stands in its way: tools, clocks, firewalls, VMs worth recreating.")));
}

function reach(host, isWatched) {
  if (!host.unreachable) return isWatched ? element("span", {}, "no trouble seen") : element("span", { class: "muted" }, "not tried");
  return element("div", { class: "trouble" }, tag("unreachable", "bad"), ` ${host.unreachable}.`,
    host.remedy && element("div", { class: "remedy" }, element("strong", {}, "What to do: "), withCode(host.remedy)));
}

function vmCaps(caps) {
  if (!caps.length) return element("span", { class: "muted" }, "none measured");
  return caps.map((cap) => element("div", { class: "vm-cap" },
    `${cap.cap} ${cap.mbps >= 1000 ? gbps(cap.mbps / 1000) : mbps(cap.mbps)}`,
    element("small", { class: "muted" }, since(cap.measured_at_s, cap.catalogue_mbps ? ` of ${gbps(cap.catalogue_mbps / 1000)}, ` : " ")),
    cap.recreate && element("span", { class: "remedy" }, " ", tag("recreate it", "warn"), ` ${cap.text}`)));
}
