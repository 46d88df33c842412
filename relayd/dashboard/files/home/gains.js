// Where a relay gains most: ten pairs, with what it costs and what an hour must be worth for it.

import { band } from "../shared/band.js";
import { element, replace } from "../shared/dom.js";
import { count, duration, percent, times, usd, volume } from "../shared/format.js";
import { ends } from "../shared/pairs.js";
import { cardTable } from "../shared/parts.js";

const planAddress = ({ src, dst }, volume_gb) =>
  `plan?${new URLSearchParams({ src, dst, volume_gb, objective: "time", relays: "one", vms: 1 })}`.replaceAll("%3A", ":");

export function showGains(part, { relays, pairs, volume_gb }) {
  const title = element("h2", {}, "Where one relay is fastest");
  if (!relays.length) {
    replace(part, title, element("p", { class: "muted" }, "On no pair of regions is a relay expected to gain a tenth: send direct."));
    return;
  }
  const size = volume(volume_gb);
  const most = Math.max(...relays.map((each) => each.gain_high));
  // A gain of 400 and one of 2 are seen side by side on a logarithmic scale from 1.
  const onScale = (value) => Math.log(Math.max(1, value));
  const second = (text) => element("small", { class: "muted" }, text);
  replace(part, title,
    cardTable("gains", `Where time alone counts, with one VM a region, ${count(pairs)} pairs gain a tenth or more through one relay; these gain most, for ${size}. The form above weighs the price and may add VMs instead. Bands hold nine of ten true gains; their scale is logarithmic and begins at 1×.`,
      [["Transfer"], ["Gain", "number"], ["Probability", "number"], ["Time", "number"], ["Price", "number"], ["Pays from", "number"]],
      relays.map((each) => ({
        data: { key: `${each.src}>${each.dst}` },
        cells: [
          [element("a", { href: planAddress(each, volume_gb) }, ends(each.src, each.dst)),
            second(`through ${each.relay}${each.source === "measured" ? "" : ` (${each.source})`}`)],
          [times(each.gain), second(`${times(each.gain_low)} to ${times(each.gain_high)}`),
            band({ low: onScale(each.gain_low), expected: onScale(each.gain), high: onScale(each.gain_high) }, onScale(most),
              `Gain ${times(each.gain)}, ${times(each.gain_low)} to ${times(each.gain_high)}`, { width: 90 })],
          percent(Math.round(100 * each.probability)),
          [duration(each.relay_s), second(`direct ${duration(each.direct_s)}`)],
          [usd(each.relay_usd), second(`direct ${usd(each.direct_usd)}`)],
          [usd(each.pays_from_usd_per_h), second("an hour")],
        ],
      }))),
    element("p", {}, element("a", { href: "matrix?metric=relay-gain" }, "The gain of every pair")));
}
