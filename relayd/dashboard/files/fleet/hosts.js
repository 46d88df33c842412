// Hosts by region, and links that are not as usual.

import { cardTable, since, small, tag, withCode } from "../shared/parts.js";
import { element } from "../shared/dom.js";
import { gbps, mbps, ms, percent, UNKNOWN } from "../shared/format.js";
import { pairLink } from "../shared/pairs.js";

const FIRST = 100; // of a large fleet only some are shown at once

const toRecreate = (fleet, host) => fleet.vm_caps.some((cap) => cap.host === host.name && cap.recreate);
// Hosts for which there is something to do: unreachable, or slower than others of their type.
export const advised = (fleet) => fleet.hosts.filter((host) => host.unreachable !== null || toRecreate(fleet, host));

export function linksOf(fleet, watch) {
  const rank = ({ condition }) => Number(condition !== "down");
  const links = [...fleet.leg_states].sort((a, b) => rank(a) - rank(b) || a.since.localeCompare(b.since));
  const text = watch ? `All ${watch.legs?.up ? `${watch.legs.up} ` : ""}links that are watched are as usual, or were not judged yet.`
    : "Not looked at: links that fail show only where `relayd measure watch`, or a service with a daily budget, looks at them.";
  return [element("h2", {}, "Links down or degraded now"), !links.length ? element("p", { class: watch ? null : "muted" }, withCode(text))
    : cardTable("links", "Plans go around links that are down, and count degraded ones at what they carry now",
      [["Link"], ["State"], ["Since"], ["What was seen"], ["Now"]], links.map((link) => ({
        kinds: { 2: "time" },
        cells: [pairLink(link.src, link.dst), tag(link.condition, link.condition === "down" ? "bad" : "warn"),
          [link.since.replace("T", " "), small(since(Date.parse(link.since) / 1000))], link.reason, effect(link)],
      })))];
}

function effect(link) {
  if (link.condition === "down") return "carries nothing";
  return [
    link.rate_share < 1 && `${percent(100 * link.rate_share)} of its usual rate`, link.loss_share > 0 && `loses ${percent(100 * link.loss_share)} of packets`,
    link.rtt_ms !== null && `round trip ${ms(link.rtt_ms)}`,
  ].filter(Boolean).join(", ") || UNKNOWN;
}

export function hostsOf(fleet, isWatched) {
  if (!fleet.configured) return null;
  const title = element("h2", {}, "Hosts by region");
  if (fleet.problem) return [title, element("p", { class: "problem" }, fleet.problem)];
  const muted = (text) => element("span", { class: "muted" }, text);
  const trouble = (host) => 2 * Number(host.unreachable !== null) + Number(toRecreate(fleet, host)); // comes first
  const rows = [...fleet.hosts].sort((a, b) => trouble(b) - trouble(a) || a.region.localeCompare(b.region)).map((host) => ({
    data: { host: host.name, key: host.name },
    cells: [
      host.region, [host.name === host.region ? muted("same as region") : host.name, host.zone && small(` zone ${host.zone}`)],
      host.vm_type || muted("not said"),
      host.unreachable ? element("div", { class: "trouble" }, tag("unreachable", "bad"), ` ${host.unreachable}.`,
        host.remedy && element("div", { class: "remedy" }, element("strong", {}, "What to do: "), withCode(host.remedy)))
        : isWatched ? "no trouble seen" : muted("not tried"),
      vmCaps(fleet.vm_caps.filter((cap) => cap.host === host.name)),
    ],
  }));
  return [title, cardTable("hosts", "As the fleet file has them, and what each VM was measured to do",
    [["Region"], ["Host"], ["VM type"], ["Reached"], ["Measured caps of this VM"]], rows, FIRST),
  element("p", { class: "muted" }, withCode("`relayd measure fleet check` logs in to each host and says what stands in its way: tools, clocks, firewalls, VMs worth recreating."))];
}

const rate = (value) => (value >= 1000 ? gbps(value / 1000) : mbps(value));
const vmCaps = (caps) => (caps.length ? caps.map((cap) => element("div", { class: "vm-cap" }, `${cap.cap} ${rate(cap.mbps)}`,
  small(since(cap.measured_at_s, cap.catalogue_mbps ? ` of ${gbps(cap.catalogue_mbps / 1000)}, ` : " ")),
  cap.recreate && element("span", { class: "remedy" }, " ", tag("recreate it", "warn"), ` ${cap.text}`)))
  : element("span", { class: "muted" }, "none measured"));
