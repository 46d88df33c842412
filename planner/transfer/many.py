"""Many transfers over one path each, decided at once on arrays.

:mod:`planner.transfer.decision` decides one transfer in about a millisecond. This is its rule on
arrays, a row a question, for what most questions are: what it can't decide (:func:`decide_many`)
is left to that. With ``single_path`` both decide alike; without it, they do where `split_gain` is
0. A split over the direct path (share a) and relays costs at least, with VMs in fractions::

    D (a fee_sd + (1 - a) min_r fee_r) + (8 D / R + t_lead) (w(a) R + price_r + h)
    w(a) = price_s max(1 / E_s, a / P_sd) + price_d max(1 / I_d, a / Q_sd)

(symbols of :mod:`planner.transfer.problem`; h is what an hour is worth). At each rate this is
linear between the shares at which a maximum changes, and at each share convex in the rate: four
shares at their best rates bound all splits and, with none of it direct, all relays.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from planner.fields.shared import GB_A_DAY, MOST_VMS
from planner.model.estimate import ADDRESS_KINDS, BOUNDS, Bound, Origin
from planner.model.link import FURTHER_VM, LIMITED_BY, LinkFigure
from planner.model.link_array import (
    KINDS,
    Bools,
    Floats,
    Ints,
    Records,
    held_ends,
    most_gbps,
    rates_gbps,
)
from planner.model.network import Network
from planner.model.pricing import (
    CataloguePrices,
    PriceList,
    average_usd_per_gb,
    has_fees,
    provider_of,
    vm_prices_usd_per_h,
)
from planner.model.throughput import LAW_CONNECTIONS, LIKELY, ramp_up_s
from planner.model.units import BITS_PER_BYTE, S_PER_H
from planner.solvers.joint import (
    BOUND_SCORE,
    factors,
    least_slow_probabilities,
    scores,
    spread,
    worth,
)
from planner.transfer.allocation import EQUAL, ROUNDING
from planner.transfer.decision import AS_GOOD
from planner.transfer.options import DIRECT_LINK, DST_CAP, DST_WINDOW, MARGINAL, RELAYS, SRC_CAP
from planner.transfer.request import CONNECTIONS_TO_SPLIT, TransferRequest
from planner.transfer.search import AS_FAST, AS_GOOD_VALUE, SPLIT_GAIN

AT_ONCE, RELAYED_AT_ONCE = 16384, 1024
"""Questions whose arrays, and those by relay, fit a processor's cache."""
DIRECT, NONE = -1, -2
"""In place of a relay's position: the direct path, and no plan."""
WAY = np.dtype(
    [(name, np.int64) for name in ("relay", "src_vms", "dst_vms", "relay_vms")]
    + [(name, np.float64) for name in ("gbps", "low_gbps", "high_gbps", "duration_s", "cost_usd")]
    + [(name, np.float64) for name in ("egress_usd", "usd_per_h", "lead_s", "value", "split_gain")]
)
"""One path with its VMs, and what it comes to; `split_gain` is the most that a split may save of
value or cost, as a share: 0 where none saves enough to be taken."""
VMS = ["src_vms", "dst_vms", "relay_vms"]


class Transfers(NamedTuple):
    """Transfers with like settings, an array of length m each.

    Attributes
    ----------
    src, dst : positions in the network
    volume_gb : GB
    budget_usd, deadline_s : infinity for none
    least_gbps : 0 for none
    """

    src: Ints
    dst: Ints
    volume_gb: Floats
    budget_usd: Floats
    deadline_s: Floats
    least_gbps: Floats

    def at(self, rows: Any) -> Transfers:
        """Return some of them."""
        return Transfers(*(column[rows] for column in self))


class _Figures:
    """Figures of all links of a network, (n, n), and of its sites, with some connections a VM."""

    def __init__(self, network: Network, connections: int) -> None:
        links = network.links
        self.cells = cells = links.whole
        self.each, self.there = connections, cells["address"] != 0
        # Of the kind of address of each link, (n, n), and of all traffic of a site.
        is_private = cells["address"] == ADDRESS_KINDS.index("private") + 1
        kinds = {b: [network.caps(b, kind) for kind in ADDRESS_KINDS] for b in BOUNDS}
        self.out, self.into = (
            {
                bound: np.where(is_private, *(cap[end].reshape(shape) for cap in of[::-1]))
                for bound, of in kinds.items()
            }
            for end, shape in enumerate([(-1, 1), (1, -1)])
        )
        self.most_out, self.most_into = network.caps()
        self.held = held_ends(cells["limited_by"], self.out["expected"], self.into["expected"])
        self.flows, self.most = connections * rates_gbps(cells, 1), most_gbps(cells, connections)
        self.sends, self.accepts = (
            np.where(held | ~self.there, self.most, inf) for held in self.held
        )
        self.pair = {bound: rates_gbps(cells, connections, bound) for bound in BOUNDS}
        self.one = {bound: rates_gbps(cells, 1, bound) for bound in BOUNDS}
        self.rtt_ms = np.where(self.there, cells["rtt_ms"]["expected"], inf)

        def by_origin(name: LinkFigure, of: Callable[[Origin], float]) -> Floats:
            return links.by_origin(cells, name, of)

        expected = self.pair["expected"]
        below, above = (spread(expected, self.pair[bound]) for bound in ("low", "high"))
        self.below = below
        windows = [site.window_mb for site in network.sites.values()]
        shown = np.array([(one.low, one.expected, one.high) for one in windows]).reshape(-1, 3).T
        by_window = by_origin("per_flow_mbps", lambda one: one.method == "window-over-rtt") > 0
        by_window &= self.flows <= expected * (1 + MARGINAL)
        held_window = [np.where(by_window, spread(shown[1], shown[b]), 0.0) for b in (0, 2)]
        self.window = np.minimum(below, held_window[0]), np.minimum(above, held_window[1])
        self.own = below, above
        self.own_into_dst = tuple(
            np.sqrt(whole**2 - part**2) for whole, part in zip(self.own, self.window, strict=True)
        )
        self.slow = np.round(cells["slow_connections"].astype(float), 6)
        tested = by_origin(
            "aggregate_gbps", lambda one: _shown(one, "connections", LAW_CONNECTIONS)
        )
        self.slow_gbps = cells["aggregate_gbps"]["expected"] / np.maximum(tested, 1)
        self.tried = by_origin("aggregate_gbps", lambda one: _shown(one, "vms", 1))
        self.further = np.array([FURTHER_VM[limit] for limit in LIMITED_BY])[cells["limited_by"]]
        self.odd = links.kinds(cells, "aggregate_gbps") != KINDS.index("measured")


def _shown(origin: Origin, name: str, otherwise: int) -> float:
    return getattr(origin.figures, name, None) or otherwise


class _Links(NamedTuple):
    """Links of some ways, of length m each, with the VMs that these have at their ends."""

    gbps: dict[Bound, Floats]
    spreads: tuple[Floats, Floats]
    window: tuple[Floats, Floats] | None
    slow: Floats
    slow_share: Floats
    odd: Bools
    one_gbps: dict[Bound, Floats]

    def at(self, bound: Bound) -> Floats:
        """Return their limits at a bound; see :class:`planner.transfer.options.Limit`."""
        least = {"low": 1 - LIKELY, "expected": 1.0, "high": LIKELY}[bound]
        return np.where(self.slow > least, self.slow_share, 1.0) * self.gbps[bound]

    def drawn(self, dimension: int) -> Floats:
        """Return their limits in each draw, shape (m, draws)."""
        found = self.gbps["expected"][:, None] * factors(scores(dimension), *self.spreads, self.odd)
        if self.window and (self.window[0].any() or self.window[1].any()):
            found *= factors(scores(DST_WINDOW), *self.window)
        slow = least_slow_probabilities() < self.slow[:, None]
        return np.where(slow, self.slow_share[:, None], 1.0) * found


class _Choice:
    """The choice for some transfers with like settings."""

    def __init__(
        self,
        like: TransferRequest,
        network: Network,
        prices: CataloguePrices,
        figures: _Figures,
        listed: tuple[list[PriceList], Ints],
        bounds: dict[bytes | int, tuple[Floats, Floats]],
        asked: Transfers,
    ) -> None:
        self.like, self.asked, self.of, self.hour_usd = like, asked, figures, like.hour_usd
        regions = network.usual.regions
        src, dst, volume_gb = asked.src, asked.dst, asked.volume_gb
        self.gbps_h = BITS_PER_BYTE * volume_gb / S_PER_H
        limits, sites = like.vm_limits, list(network.sites.values())
        days, day = np.unique(np.ceil(volume_gb / GB_A_DAY), return_inverse=True)
        unasked = [limits._replace(volume_gb=day * GB_A_DAY).unasked for day in days.tolist()]
        self.unasked = np.array(unasked)[day]
        self.vm_usd = vm_prices_usd_per_h(prices, network, np.arange(len(sites)))
        # -1 where the number of VMs depends on the volume.
        free = [not (s.vms or s.quotas or limits.vms or s.region in like.vms_in) for s in sites]
        quota = [-1 if f else limits.most(s) for f, s in zip(free, sites, strict=True)]
        self.quota, only = np.array(quota), like.relays not in {"any", "one"}
        self.is_stated = np.array(
            [limits.vms is not None or s.region in like.vms_in for s in sites]
        )
        self.may_relay = np.array(
            [not (s.region in like.forbidden or (only and s.region != like.relays)) for s in sites]
        )
        fleet = np.array([bool(site.vms) for site in sites])
        self.ends_start_s = np.where(fleet[src] & fleet[dst], 0.0, like.start_s)
        self.relays_start_s = np.where(fleet, 0.0, like.start_s)
        (self.lists, self.listed), self.bounds = listed, bounds
        self.power = np.ceil(np.log2(volume_gb)).astype(int)
        # By how many times the volume a meter counts, less one, by list and by transfer.
        self.fees = np.array(
            [
                [average_usd_per_gb(tiers, n * volume_gb, gb) for tiers, gb in self.lists]
                for n in (1, 2)
            ]
        )
        self.is_priced = np.isfinite(self.fees[0].min(axis=1))[self.listed]
        self.providers = np.unique([provider_of(name) for name in regions], return_inverse=True)[1]
        self.direct_fee = self.fees[0, self.listed[src, dst], np.arange(len(src))]

    # ---- ways ------------------------------------------------------------------------------------

    def _vms(self, rows: Ints, sites: Any, most: Ints) -> Ints:
        """Return the most VMs of each row at a site of its own, or at several."""
        quota, unasked = self.quota[sites], self.unasked[rows]
        if quota.shape != unasked.shape:
            unasked, most = unasked[:, None], most[:, None]
        quota = np.where(quota < 0, unasked, quota)
        found: Ints = np.where(self.is_stated[sites], quota, np.minimum(quota, most))
        return found

    def _ways(
        self, rows: Ints, relay: Ints, stages: list[tuple[Any, ...]], fee: Floats, rtt_ms: Floats
    ) -> Records:
        """Return the best of one path each, as :func:`~planner.transfer.allocation.best_on_path`.

        Stages are rates of one VM, most VMs, prices and the name of their number.
        """
        asked, gbps_h, found = self.asked.at(rows), self.gbps_h[rows], np.zeros(len(rows), WAY)
        start_s = self.ends_start_s[rows]
        start_s = np.where(relay < 0, start_s, np.maximum(start_s, self.relays_start_s[relay]))
        lead_s = start_s + ramp_up_s(rtt_ms)
        with np.errstate(divide="ignore", invalid="ignore"):
            egress_usd, left_s = asked.volume_gb * fee, asked.deadline_s - lead_s
            needed = np.where(left_s > 0, BITS_PER_BYTE * asked.volume_gb / left_s, inf)
        needed = np.maximum(asked.least_gbps, needed)
        most = np.minimum.reduce([gbps * vms for gbps, vms, *_ in stages])
        rates = [most[:, None]]
        for gbps, vms, *_ in stages:
            with np.errstate(divide="ignore", invalid="ignore"):
                full = np.minimum(vms, np.nan_to_num(most / gbps) // 1 + 1)
            times = np.arange(1, int(full.max(initial=1)) + 1)
            rates.append(np.where(times <= vms[:, None], gbps[:, None] * times, 0.0))
        rate = np.concatenate(rates, axis=1)
        rate[(rate > most[:, None]) | (rate < needed[:, None] * (1 - EQUAL))] = 0.0
        rate[:, 0] = np.where(needed <= most * (1 + EQUAL), most, 0.0)
        rate[~np.isfinite(fee)] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            hours = gbps_h[:, None] / rate
            usd_per_h = sum(_whole(rate / g[:, None]) * usd[:, None] for g, _, usd, _ in stages)
            cost = egress_usd[:, None] + usd_per_h * (hours + lead_s[:, None] / S_PER_H)
            rate[~(cost <= asked.budget_usd[:, None] * (1 + EQUAL))] = 0.0
            if self.hour_usd < inf:
                value = np.where(rate > 0, cost + self.hour_usd * hours, inf)
                rate[value > value.min(axis=1, keepdims=True) / (1 - EQUAL)] = 0.0
        best = rate.max(axis=1)
        found["relay"], found["gbps"] = np.where(best > 0, relay, NONE), best
        best = np.where(best > 0, best, 1.0)
        for gbps, _, usd, name in stages:
            found[name] = _whole(best / np.where(gbps > 0, gbps, 1.0))
            found["usd_per_h"] += found[name] * usd
        found["duration_s"] = BITS_PER_BYTE * asked.volume_gb / best + lead_s
        found["cost_usd"] = egress_usd + found["usd_per_h"] * found["duration_s"] / S_PER_H
        found["egress_usd"], found["lead_s"] = egress_usd, lead_s
        found["value"] = found["duration_s"]
        if self.hour_usd < inf:
            with np.errstate(invalid="ignore"):
                hours_usd = self.hour_usd * found["duration_s"] / S_PER_H
            found["value"] = found["cost_usd"] + hours_usd
        found["value"][found["relay"] == NONE] = inf
        return found

    def direct(self, rows: Ints, most: Ints) -> Records:
        """Return the best over the direct path, with at most so many VMs where none is stated."""
        of, src, dst = self.of, self.asked.src[rows], self.asked.dst[rows]
        first = np.minimum(of.sends[src, dst], of.flows[src, dst])
        out, into = of.out["expected"][src, dst], of.into["expected"][src, dst]
        stages = [
            (np.minimum(first, out), self._vms(rows, src, most), self.vm_usd[src], VMS[0]),
            (
                np.minimum(of.accepts[src, dst], into),
                self._vms(rows, dst, most),
                self.vm_usd[dst],
                VMS[1],
            ),
        ]
        paths = np.full(len(rows), DIRECT)
        return self._ways(rows, paths, stages, self.direct_fee[rows], of.rtt_ms[src, dst])

    def _relay_fees(self, rows: Ints, via: Ints) -> Floats:
        """Return the mean $/GB of transfers through relays, as :func:`.relayed_usd_per_gb`."""
        src, dst = self.asked.src[rows], self.asked.dst[rows]
        provider = self.providers[via]
        twice = (self.providers[src] == provider) & (self.providers[dst] == provider)
        first, second = self.listed[src, via], self.listed[via, dst]
        firsts, seconds = (self.fees[twice.astype(int), at, rows] for at in (first, second))
        return np.asarray(firsts + seconds)

    def relayed(self, rows: Ints, most: Ints) -> tuple[Records, Bools]:
        """Return the best over the relay of first rank; and whether another rank must be asked.

        See :meth:`planner.transfer.search.TransferSearch.listed_relays`.
        """
        of, asked = self.of, self.asked.at(rows)
        src, dst, sites = asked.src, asked.dst, np.arange(len(self.quota))
        flows = np.minimum(of.flows[src], of.flows.T[dst])
        out, into = of.out["expected"], of.into["expected"]
        first = np.minimum(np.minimum(of.sends[src], flows), out[src])
        last = np.minimum(of.accepts.T[dst], into.T[dst])
        each = np.minimum.reduce([of.accepts[src], of.sends.T[dst], flows, into[src], out.T[dst]])
        vms = self._vms(rows, sites[None, :], most)
        able = (first > 0) & (last > 0) & (vms > 0) & self.may_relay
        able &= self.is_priced[src] & self.is_priced.T[dst]
        src_vms, dst_vms = self._vms(rows, src, most), self._vms(rows, dst, most)
        rates = np.minimum(first * src_vms[:, None], last * dst_vms[:, None])
        rates = np.minimum(rates, each * vms)
        rtts_ms, fee = of.rtt_ms[src] + of.rtt_ms.T[dst], np.full(rates.shape, inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            left_s = asked.deadline_s - self.ends_start_s[rows]
            needed = np.where(left_s > 0, BITS_PER_BYTE * asked.volume_gb / left_s, inf)
            needed = np.maximum(asked.least_gbps, needed)
            able &= rates >= needed[:, None] * (1 - EQUAL)
            left, first_able = able, able.any(axis=1)
            if self.hour_usd:
                took = BITS_PER_BYTE * asked.volume_gb[:, None] / rates + ramp_up_s(rtts_ms)
                least = np.where(able, took, inf).min(axis=1, keepdims=True)
                left = able & (((1 - least / took) / AS_FAST).astype(int) == 0)
        at, via = np.nonzero(left)
        fee[at, via] = self._relay_fees(rows[at], via)
        for key in (fee, rtts_ms) if self.hour_usd else (fee, -rates, rtts_ms):
            key = np.where(left, key, inf)
            left = left & (key == key.min(axis=1, keepdims=True))
        relay, of_row = left.argmax(axis=1), np.arange(len(rows))
        stages = [
            (first[of_row, relay], src_vms, self.vm_usd[src], VMS[0]),
            (each[of_row, relay], vms[of_row, relay], self.vm_usd[relay], VMS[2]),
            (last[of_row, relay], dst_vms, self.vm_usd[dst], VMS[1]),
        ]
        chosen_fee = np.where(first_able, fee[of_row, relay], inf)
        found = self._ways(rows, relay, stages, chosen_fee, rtts_ms[of_row, relay])
        return found, first_able & (found["relay"] == NONE)

    # ---- bounds and draws ------------------------------------------------------------------------

    def _links(
        self, ways: Records, ends: tuple[Ints, Ints], vms: tuple[Ints, Ints], *, last: bool
    ) -> _Links:
        of, (src_vms, dst_vms) = self.of, vms
        opened = np.minimum(
            ways["src_vms"], np.where(ways["relay"] < 0, MOST_VMS, ways["relay_vms"])
        )
        by_sender, by_receiver = (held[ends] for held in of.held)
        held = np.minimum(
            np.where(by_sender, src_vms, MOST_VMS), np.where(by_receiver, dst_vms, MOST_VMS)
        )
        held = np.where(src_vms == dst_vms, src_vms, held)
        flows, most, tried = of.flows[ends], of.most[ends], of.tried[ends]
        opening = np.where(
            ways["relay"] < 0, src_vms, np.minimum(ways["src_vms"], ways["relay_vms"])
        )
        pairs = np.minimum(flows * opening, most * held) / np.minimum(flows, most)
        least = np.minimum(1.0, (tried + (pairs - tried) * of.further[ends]) / pairs)
        further = spread(np.ones_like(least), least)
        gbps = {bound: of.pair[bound][ends] * pairs for bound in BOUNDS}
        below = of.below[ends]
        gbps["low"] *= np.exp(BOUND_SCORE * (below - np.hypot(below, further)))
        own = [one[ends] for one in (of.own_into_dst if last else of.own)]
        window = (of.window[0][ends], of.window[1][ends]) if last else None
        slow = of.slow[ends]
        carried = self.of.each * opened * of.slow_gbps[ends]
        share = np.where(slow > 0, np.minimum(1.0, carried / gbps["expected"]), 1.0)
        one = {bound: of.one[bound][ends] for bound in BOUNDS}
        return _Links(
            gbps, (np.hypot(own[0], further), own[1]), window, slow, share, of.odd[ends], one
        )

    def _paths(self, rows: Ints, ways: Records) -> tuple[Ints, Ints, list[_Links]]:
        """Return the ends of ways, all direct or all relayed, and their links."""
        src, dst, relay = self.asked.src[rows], self.asked.dst[rows], ways["relay"]
        vms = [ways[name] for name in VMS]
        if not len(rows) or relay[0] < 0:
            return src, dst, [self._links(ways, (src, dst), (vms[0], vms[1]), last=True)]
        first = self._links(ways, (src, relay), (vms[0], vms[2]), last=False)
        return src, dst, [first, self._links(ways, (relay, dst), (vms[2], vms[1]), last=True)]

    def rates_at(self, rows: Ints, ways: Records, bound: Bound) -> Floats:
        """Return :meth:`planner.transfer.options.Option.rate_at` of ways of one kind."""
        src, dst, links = self._paths(rows, ways)
        out, into, relay = self.of.out[bound], self.of.into[bound], ways["relay"]
        to, by = (dst, src) if len(links) == 1 else (relay, relay)
        least = [out[src, to] * ways["src_vms"], into[by, dst] * ways["dst_vms"]]
        least += [link.at(bound) for link in links]
        if len(links) > 1:
            least.append(np.minimum(into[src, relay], out[relay, dst]) * ways["relay_vms"])
        one = np.minimum.reduce([link.one_gbps[bound] for link in links])
        least.append(self.of.each * ways["src_vms"] * one)
        possible = np.minimum.reduce(least)
        within = (np.minimum if bound == "low" else np.maximum)(ways["gbps"], possible)
        return np.where(possible > 0, within, 0.0)

    def _values(self, rows: Ints, ways: Records) -> Any:
        """Return :attr:`planner.transfer.options.Option.values`, shape (m, draws)."""
        src, dst, links = self._paths(rows, ways)
        of, relay = self.of, ways["relay"]

        def cap(caps: dict[Bound, Floats], at: tuple[Ints, Ints], vms: Ints, number: int) -> Floats:
            low, expected, high = (caps[bound][at] for bound in BOUNDS)
            drawn = factors(scores(number), spread(expected, low), spread(expected, high))
            return (expected * vms)[:, None] * drawn

        to, by = (dst, src) if len(links) == 1 else (relay, relay)
        limits = [
            cap(of.out, (src, to), ways["src_vms"], SRC_CAP),
            cap(of.into, (by, dst), ways["dst_vms"], DST_CAP),
        ]
        first = DIRECT_LINK if len(links) == 1 else RELAYS
        limits += [link.drawn(first + number) for number, link in enumerate(links)]
        if len(links) > 1:
            accepts, forwards = (src, relay), (relay, dst)
            is_less = of.into["expected"][accepts] <= of.out["expected"][forwards]
            vms = ways["relay_vms"]
            caps = [cap(of.into, accepts, vms, RELAYS + 2), cap(of.out, forwards, vms, RELAYS + 2)]
            limits.append(np.where(is_less[:, None], *caps))
        hours = self.gbps_h[rows][:, None] / np.minimum.reduce(limits)
        hours += ways["lead_s"][:, None] / S_PER_H
        if self.hour_usd == inf:
            return hours
        return ways["egress_usd"][:, None] + (ways["usd_per_h"] + self.hour_usd)[:, None] * hours

    def _of_relays(self, power: int) -> tuple[Floats, Floats]:
        """Return the least fee of both links of relays, USD/GB, and round trip, (n, n).

        For volumes from half of 2 to this power on, whatever else is asked at the same time.
        """
        if power in self.bounds:
            return self.bounds[power]
        around = np.exp2([power - 1, power, power + 1])  # where a meter counts both links, twice
        of_lists = np.array(
            [average_usd_per_gb(tiers, around, gb).min() for tiers, gb in self.lists]
        )
        if (key := of_lists.tobytes()) not in self.bounds:
            barred = np.where(self.may_relay & (self.quota != 0), 0.0, inf)
            fees = np.where(self.of.there, of_lists[self.listed], inf)
            both = np.full((2, *fees.shape), inf)
            for least, each in zip(both, (fees, self.of.rtt_ms), strict=True):
                for src, row in enumerate(each):
                    least[src] = (row + barred + each.T).min(axis=1)
            self.bounds[key] = both[0], both[1]
        return self.bounds.setdefault(power, self.bounds[key])

    def _least(self, rows: Ints, most: Ints, least_gbps: Floats) -> tuple[Floats, Floats, Floats]:
        """Bound what relays alone come to in value, and splits in value and in cost.

        Where time alone counts, the value is in hours, and the cost that of splits as fast.
        """
        of, asked, gbps_h = self.of, self.asked.at(rows), self.gbps_h[rows]
        src, dst, vm_usd = asked.src, asked.dst, self.vm_usd
        fees, rtts_ms, powers = np.empty(len(rows)), np.empty(len(rows)), self.power[rows]
        for power in np.unique(powers).tolist():
            at = np.flatnonzero(powers == power)
            fees[at], rtts_ms[at] = (one[src[at], dst[at]] for one in self._of_relays(power))
        out, into = of.most_out[src], of.most_into[dst]
        first, last = np.minimum(of.sends[src, dst], of.flows[src, dst]), of.accepts[src, dst]
        ends_usd, relay_usd = vm_usd[src] + vm_usd[dst], vm_usd.min()
        with np.errstate(divide="ignore", invalid="ignore"):
            corners = np.minimum(1, first / out), np.minimum(1, last / into)
            share = np.stack([np.zeros_like(out), *corners, np.ones_like(out)])
            loads = np.maximum(1 / out, share / first), np.maximum(1 / into, share / last)
            quotas = self._vms(rows, src, most), self._vms(rows, dst, most)
            rate = np.minimum(quotas[0] / loads[0], quotas[1] / loads[1])
            each_usd = vm_usd[src] * loads[0] + vm_usd[dst] * loads[1]
            rtt_ms = np.where(np.arange(4)[:, None] == 0, rtts_ms, of.rtt_ms[src, dst])
            lead_h = (self.ends_start_s[rows] + ramp_up_s(rtt_ms)) / S_PER_H
            egress = np.where(share > 0, share * self.direct_fee[rows], 0.0)
            egress = asked.volume_gb * (egress + np.where(share < 1, (1 - share) * fees, 0.0))

            def at_best(hour_usd: float, from_gbps: Any = 0.0) -> Any:
                best = np.sqrt(gbps_h * (hour_usd + relay_usd) / (lead_h * each_usd))
                best = np.maximum(np.maximum(best, ends_usd / each_usd), from_gbps)
                best = np.minimum(best, rate)
                hours_usd = (hour_usd + relay_usd) * (gbps_h / best + lead_h)
                vms_usd = gbps_h * each_usd + lead_h * np.maximum(each_usd * best, ends_usd)
                found = egress + hours_usd + vms_usd
                return np.nan_to_num(found, nan=0.0, posinf=inf)  # not known proves nothing

            if self.hour_usd == inf:
                values = np.nan_to_num(lead_h + gbps_h / rate, nan=0.0, posinf=inf)
                costs = at_best(0.0, least_gbps)
            else:
                values, costs = at_best(self.hour_usd), at_best(0.0)
        return values[0], values.min(axis=0), costs.min(axis=0)

    # ---- the choice ------------------------------------------------------------------------------

    def choose(self, rows: Ints, most: Ints, direct: Records) -> tuple[Records, Bools, Bools]:
        """Return the choice, whether it is the optimum, and where it must be asked for one by one.

        See :attr:`planner.transfer.search.TransferSearch.choice`.
        """
        value_usd, chosen, is_open = direct["value"], direct.copy(), np.zeros(len(rows), bool)
        alone, split, split_usd = self._least(rows, most, direct["gbps"])
        known = direct["relay"] != NONE
        is_optimum, best = np.ones(len(rows), bool), direct.copy()
        if self.hour_usd == inf:
            value_usd = value_usd / S_PER_H
        asking = np.flatnonzero(~known | (alone < value_usd * (1 + AS_GOOD_VALUE)))
        for first in range(0, len(asking), RELAYED_AT_ONCE):
            some = asking[first : first + RELAYED_AT_ONCE]
            relayed, is_open[some] = self.relayed(rows[some], most[some])
            of_direct, among = direct[some], rows[some]
            better = relayed["value"] < of_direct["value"] * (1 - EQUAL)
            both = (relayed["relay"] != NONE) & known[some]
            near = both & (relayed["value"] <= of_direct["value"] * (1 + AS_GOOD_VALUE))
            near &= relayed["cost_usd"] < of_direct["cost_usd"] * (1 - SPLIT_GAIN)
            if near.any():
                low = [self.rates_at(among[near], one[near], "low") for one in (relayed, of_direct)]
                better[near] |= low[0] >= low[1] * (1 - AS_FAST)
            take = better & ~known[some]
            if len(at := np.flatnonzero(better & both)):
                over = of_direct[at]
                margin = np.full(len(at), self.like.margin)
                if self.hour_usd < inf:
                    margin *= 1 - over["egress_usd"] / over["value"]
                ratios = self._values(among[at], over) / self._values(among[at], relayed[at])
                take[at] = worth(ratios, margin[:, None], self.like.risk)
            best[some] = np.where(better, relayed, of_direct)
            chosen[some] = np.where(take, relayed, of_direct)
            is_optimum[some] = take == better
        if self.like.may_split and self.like.relays != "none":
            cost_usd, value_usd = best["cost_usd"], best["value"]
            if self.hour_usd == inf:
                value_usd = value_usd / S_PER_H
            with np.errstate(invalid="ignore"):
                gain = np.maximum(1 - split / value_usd, 1 - split_usd / cost_usd)
            gain[(split > value_usd * (1 + AS_GOOD_VALUE)) | ~(gain > SPLIT_GAIN)] = 0.0
            chosen["split_gain"] = np.where(best["relay"] == NONE, 1.0, gain)
        return chosen, is_optimum, is_open

    def decided(self) -> tuple[Records, Bools]:
        """Return the decisions, and where they must be made one by one.

        With the fewest VMs that are as good: :func:`planner.transfer.decision._with_fewest_vms`.
        """
        rows = np.arange(len(self.asked.src))
        widest = np.full(len(rows), MOST_VMS)
        direct = self.direct(rows, widest)
        best, is_optimum, is_open = self.choose(rows, widest, direct)
        none, pair = best["relay"] == NONE, (self.asked.src, self.asked.dst)
        is_open |= none & ~(self.of.there[pair] & self.is_priced[pair])  # perhaps nothing is known
        if self.like.vms is None:
            of = rows, best, direct, is_optimum, is_open | none
            best, more_open = self._with_fewest_vms(*of)
            is_open |= more_open & ~none
        for name in WAY.names or ():
            best[name][none] = NONE if name == "relay" else 0 if name in VMS else nan
        for relayed in (False, True):
            at = np.flatnonzero(~is_open & ~none & ((best["relay"] >= 0) == relayed))
            best["low_gbps"][at] = self.rates_at(at, best[at], "low")
            best["high_gbps"][at] = self.rates_at(at, best[at], "high")
        return best, is_open

    def _with_fewest_vms(
        self, rows: Ints, best: Records, direct: Records, is_optimum: Bools, is_open: Bools
    ) -> tuple[Records, Bools]:
        value_usd, hour_usd = best["value"], self.hour_usd
        slack = AS_GOOD * (value_usd if hour_usd == inf else value_usd - best["egress_usd"])
        worst = value_usd + (EQUAL * value_usd if hour_usd == 0 else slack)
        relays_may_do, is_open = best["relay"] >= 0, is_open.copy()
        of, src, dst = self.of, self.asked.src, self.asked.dst
        chosen, split_gain = best.copy(), best["split_gain"].copy()

        def choice_of(at: Ints, most: Ints, way: Records) -> Records:
            found, _, more_open = self.choose(at, most, way)
            is_open[at] |= more_open
            split_gain[at] = np.maximum(split_gain[at], found["split_gain"])
            return found

        def is_as_good(at: Ints, ways: Records) -> Any:
            return (ways["relay"] != NONE) & (ways["value"] <= worst[at])

        def may_do(at: Ints, most: Ints) -> Any:
            way = self.direct(at, most)
            good = is_as_good(at, way)
            ends = np.minimum(
                of.most_out[src[at]] * self._vms(at, src[at], most),
                of.most_into[dst[at]] * self._vms(at, dst[at], most),
            )
            ask = ~good & relays_may_do[at]
            if hour_usd == inf:
                ask &= BITS_PER_BYTE * self.asked.volume_gb[at] / ends <= worst[at]
            if ask.any():
                good[ask] = is_as_good(at[ask], choice_of(at[ask], most[ask], way[ask]))
            return good

        may = ~self.is_stated & self.may_relay
        limits = self.quota[may]
        most = np.maximum(limits.max(initial=1), self.unasked if (limits < 0).any() else 1)
        for end in (src, dst):
            quota = np.where(self.quota[end] < 0, self.unasked, self.quota[end])
            most = np.maximum(most, np.where(self.is_stated[end], 1, quota))
        fits = is_as_good(rows, direct)
        enough = np.where(fits, _most_of(direct), most)
        low, high = np.zeros(len(rows), int), np.maximum(0, np.minimum(most, enough) - 1)
        high[is_open] = 0
        while len(at := np.flatnonzero(low < high)):
            middle = (low[at] + high[at]) // 2
            good = may_do(at, middle + 1)
            high[at] = np.where(good, middle, high[at])
            low[at] = np.where(good, low[at], middle + 1)
        vms, is_best, active = low + 1, np.ones(len(rows), bool), ~is_open & (low + 1 < most)
        while True:
            fewest = _sum_of(chosen)
            active &= (vms < most) & (vms < fewest) & ~is_open
            active &= ~(is_best & is_optimum & (vms >= _most_of(chosen)))
            if not len(at := np.flatnonzero(active)):
                break
            way = self.direct(at, vms[at])
            will_do = is_as_good(at, way) & (_sum_of(way) < fewest[at])
            alone = will_do & ~relays_may_do[at]
            chosen[at[alone]], active[at[alone]] = way[alone], False
            ask = relays_may_do[at] & (is_best[at] | will_do)
            if ask.any():
                among = at[ask]
                found = choice_of(among, vms[among], way[ask])
                take = is_as_good(among, found) & (_sum_of(found) < fewest[among])
                took = among[take]
                chosen[took], is_best[took] = found[take], False
                active[took] = found["relay"][take] >= 0
            vms[at] += 1
        chosen["split_gain"] = split_gain
        return chosen, is_open


def _whole(load: Floats) -> Floats:
    """Return :func:`planner.transfer.allocation.whole_vms` of each."""
    found: Floats = np.maximum(1.0, np.ceil(load - ROUNDING * (1.0 + load)))
    return found


def _sum_of(ways: Records) -> Ints:
    found: Ints = ways["src_vms"] + ways["dst_vms"] + ways["relay_vms"]
    return found


def _most_of(ways: Records) -> Any:
    return np.maximum.reduce([ways[name] for name in VMS])


def can_decide(like: TransferRequest, prices: CataloguePrices) -> bool:
    """Return whether there are transfers with these settings that :func:`decide_many` decides.

    Not by round-trip time, over interconnects, with fees besides egress, or where relays are ranked
    by value: with few connections, or ``relays="one"``.
    """
    ranked = like.relays != "one" and like.connections >= CONNECTIONS_TO_SPLIT
    return ranked and not has_fees(prices) and like.objective != "latency"


def decide_many(
    like: TransferRequest, network: Network, prices: CataloguePrices, transfers: Transfers
) -> tuple[Records, Bools]:
    """Return decisions over one path, an array of :data:`WAY`, and where none was made.

    Where no path meets the limits, the relay is :data:`NONE`, and figures are NaN.

    Parameters
    ----------
    like : TransferRequest
        Their settings, for which :func:`can_decide` holds.
    network : Network
        Without links whose rate falls, and caps that do not last (:mod:`planner.model.rate_cuts`).
    prices : Prices
    transfers : Transfers
    """
    connections, figures = network.kept.get("figures", (0, None))
    if connections != like.connections:  # those asked for last are kept
        figures = _Figures(network, like.connections)
        network.kept["figures"] = like.connections, figures
    found, is_open = np.zeros(len(transfers.src), WAY), np.ones(len(transfers.src), bool)
    listed, bounds = (
        prices.price_lists(network.usual.regions),
        dict[bytes | int, tuple[Floats, Floats]](),
    )
    order = np.argsort(transfers.volume_gb, kind="stable")  # alike in tiers
    for start in range(0, len(order), AT_ONCE):
        at = order[start : start + AT_ONCE]
        of = like, network, prices, figures, listed, bounds
        choice = _Choice(*of, transfers.at(at))
        found[at], is_open[at] = choice.decided()
    return found, is_open
