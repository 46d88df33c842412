// Where relays pay at the reader's settings: what the planner answers for ten pairs, with its price.

import { get } from "../shared/api.js";
import { band } from "../shared/band.js";
import { element, replace } from "../shared/dom.js";
import { count, duration, times, usd, volume } from "../shared/format.js";
import { ends } from "../shared/pairs.js";
import { cardTable, choice, small } from "../shared/parts.js";
import { show } from "../shared/shell.js";

const WORTH = [["0", "nothing: least cost"], ["20", "$20"], ["100", "$100"], ["1000", "$1,000"], ["inf", "all: least time"]];
const said = (worth) => (worth === null ? "where time alone counts" : worth === 0 ? "where cost alone counts" : `at ${usd(worth).replace(".00", "")} an hour`);

function planAddress({ src, dst }, { volume_gb, vms, time_value_usd_per_h: worth }) {
  const by = worth === null ? { objective: "time" } : { time_value_usd_per_h: worth };
  return `./?${new URLSearchParams({ src, dst, volume_gb, relays: "one", vms, ...by })}`.replaceAll("%3A", ":");
}

export async function showGains(part) {
  const asked = { time_value_usd_per_h: "20", vms: "1" };
  const ask = (name) => (value) => {
    asked[name] = value;
    show(refresh);
  };
  const found = element("div", { "aria-live": "polite" });
  replace(part, element("h2", {}, "Where relays pay"),
    element("div", { class: "row" },
      choice("An hour is worth", WORTH, asked.time_value_usd_per_h, ask("time_value_usd_per_h")),
      choice("VMs a region, at most", ["1", "2", "4", "8"].map((each) => [each, each]), asked.vms, ask("vms"))), found);
  async function refresh() {
    found.setAttribute("aria-busy", "true");
    const answer = await get("v1/relay-gains", asked);
    found.removeAttribute("aria-busy");
    replace(found, shown(answer));
  }
  return refresh();
}

function shown(answer) {
  const { relays, pairs, asked, promising, volume_gb, time_value_usd_per_h: hour, vms } = answer;
  const settings = `${said(hour)}, with ${vms === 1 ? "one VM" : `at most ${vms} VMs`} a region`;
  const rest = promising > asked ? ` The planner was asked about the ${count(asked)} most promising of ${count(promising)} pairs.` : "";
  if (!relays.length) return element("p", {}, `None ${settings}: ${asked ? `of ${count(asked)} pairs on which a relay might pay, the planner sends all direct.` : "send direct."}`);
  const size = volume(volume_gb);
  const most = Math.max(...relays.map((each) => each.gain_high));
  // A gain of 400 and one of 2 are seen side by side on a logarithmic scale from 1.
  const onScale = (value) => Math.log(Math.max(1, value));
  return [
    cardTable("gains compact", `For ${size} ${settings}, the planner relays on ${count(pairs)} pairs; of these, the largest gains.${rest} Links in trouble are left out. Bands are the plan's, nine of ten times; their scale is logarithmic and begins at 1×.`,
      [["Transfer"], ["Gain", "number"], ["Time", "number"], ["Price", "number"], ["Pays from", "number"]],
      relays.map((each) => ({
        data: { key: `${each.src}>${each.dst}` },
        cells: [
          [element("a", { href: planAddress(each, answer) }, ends(each.src, each.dst)),
            small(`${each.verdict === "split" ? "direct and " : ""}through ${each.relay}${each.source === "measured" ? "" : ` (${each.source})`}`)],
          [times(each.gain), small(`${times(each.gain_low)} to ${times(each.gain_high)}`),
            band({ low: onScale(each.gain_low), expected: onScale(each.gain), high: onScale(each.gain_high) }, onScale(most),
              `Gain ${times(each.gain)}, ${times(each.gain_low)} to ${times(each.gain_high)}`, { width: 90 })],
          [duration(each.relay_s), small(`direct ${duration(each.direct_s)}`)],
          [usd(each.relay_usd), small(`direct ${usd(each.direct_usd)}`)],
          [usd(each.pays_from_usd_per_h), small("an hour")],
        ],
      }))),
    element("p", {}, element("a", { href: "matrix?metric=relay-gain" }, "What every pair would gain, whatever it costs"))];
}
