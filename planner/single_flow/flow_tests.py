"""Direct tests of single TCP flows, and the hosts' windows and caps that they show.

Hosts are any names: this module does not know regions, VM types or prices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import exp, hypot, inf, isfinite, log, nan
from statistics import median
from typing import NamedTuple, TypeAlias

from planner.model.baseline.flow_spreads import (
    DEVIATION_TO_90,
    WITHOUT_CAPS,
    FlowSpreads,
    later_test_error,
    window_error,
)
from planner.model.baseline.modelled_links import NO_CAP_KNOWN, WINDOW_ERROR, stock_window, within
from planner.model.errors import DataError, InputError
from planner.model.estimate import Estimate, Method, Origin, exactly
from planner.model.link import Link, Site
from planner.model.link_array import LinkArray
from planner.model.network import Network
from planner.model.throughput import MBIT_PER_MB, steady_rates, stock_window_mb, window_limited_mbps
from planner.model.units import MBPS_PER_GBPS, MS_PER_S

Pair: TypeAlias = tuple[str, str]
TESTED: Method = "median-of-samples"
WINDOW: Method = "window-over-rtt"
CAPS: Method = "vm-caps"

CAP_BELOW_MS = 20.0
"""Nearer tests meet a cap before the window fills (survey of February 2022)."""
SHARE_OF_CAP = 0.8
"""A flow above this share of a cap may be limited by it rather than by its window."""
# A window makes twice the distance half the rate. A host whose rate hardly differs over such
# distances, in so many tests, is held back by a cap.
FLAT_TESTS = 3
FLAT_RTT_RATIO = 2.0
FLAT_RATE_RATIO = 1.2


@dataclass(frozen=True, slots=True)
class FlowTest:
    """One direct test of one TCP connection, of positive, finite figures, between two hosts."""

    src: str  # the sender
    dst: str  # the receiver
    throughput_mbps: float  # mean over the test, as the receiver counted it
    rtt_ms: float | None = None
    """Round-trip time of the path without load; None where it was not measured with it."""
    duration_s: float | None = None
    """Length of a test that began with slow start; None where slow start was left out."""

    def __post_init__(self) -> None:
        if self.src == self.dst:
            raise InputError("dst", "is the sender itself", value=self.dst)
        check_positive("throughput_mbps", self.throughput_mbps)
        for name in ("rtt_ms", "duration_s"):
            if (value := getattr(self, name)) is not None:
                check_positive(name, value)


class Window(NamedTuple):
    """A receiver's effective window from so many tests, none for that of hosts as they come.

    The error is relative, at the 90th percentile; the noise of tests comes on top.
    """

    window_mb: float
    error: float
    tests: int


class FlowEvidence:
    """Evidence of direct tests: round-trip times, steady rates, receivers' windows, hosts' caps.

    `rtts_ms` maps ``(a, b)`` to a positive round-trip time in ms, which holds for both directions
    unless the other is given too, and comes before the times of tests.
    """

    def __init__(
        self, tests: Iterable[FlowTest], rtts_ms: Mapping[Pair, float | None] = {}
    ) -> None:
        self.tests = tuple(tests)
        seen: dict[Pair, list[float]] = defaultdict(list)
        for test in self.tests:
            if test.rtt_ms is not None:
                seen[test.src, test.dst].append(test.rtt_ms)
        self._rtts_ms: dict[Pair, float] = {pair: median(values) for pair, values in seen.items()}
        for pair, rtt_ms in rtts_ms.items():
            if rtt_ms is not None:
                check_positive(f"rtt_ms of {pair[0]} -> {pair[1]}", rtt_ms)
                self._rtts_ms[pair] = rtt_ms
        self._steady: dict[Pair, list[float]] = defaultdict(list)
        rates = [test.throughput_mbps for test in self.tests]
        apart_ms = [self.rtt_ms(test.src, test.dst) or 0.0 for test in self.tests]
        lengths_s = [test.duration_s or 0.0 for test in self.tests]
        steady = steady_rates(rates, apart_ms, lengths_s, one_flow=True).tolist()
        for test, mbps in zip(self.tests, steady, strict=True):
            self._steady[test.src, test.dst].append(mbps)
        self._medians = {pair: median(values) for pair, values in self._steady.items()}
        self._caps = self._fastest(near=True)
        self._windows = self._calibrated()
        self._caps = self._fastest(near=False)
        self._spreads = FlowSpreads(self._ratios(), WITHOUT_CAPS)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host of a test or of a round-trip time, in order of appearance."""
        pairs = [*((t.src, t.dst) for t in self.tests), *self._rtts_ms]
        return tuple(dict.fromkeys(host for pair in pairs for host in pair))

    def rtt_ms(self, src: str, dst: str) -> float | None:
        """Return a round-trip time, else that of the opposite direction, else None."""
        found = self._rtts_ms.get((src, dst))
        return found if found is not None else self._rtts_ms.get((dst, src))

    def steady_mbps(self, src: str, dst: str) -> tuple[float, float] | None:
        """Return the median steady rate of a pair's own tests, and a later test's error."""
        if not (rate := self._medians.get((src, dst))):
            return None
        found = self._steady[src, dst]
        deviation = DEVIATION_TO_90 * median(abs(value - rate) for value in found) / rate
        return rate, later_test_error(len(found), deviation)

    def _ratios(self) -> Iterator[tuple[str, float, float]]:
        """Yield the tests limited by windows, from which spreads are learned."""
        for (src, dst), values in self._steady.items():
            rtt_ms = self.rtt_ms(src, dst)
            if rtt_ms is not None and self.window(dst).tests:
                by_window = window_limited_mbps(self.window(dst).window_mb, rtt_ms)
                if by_window <= self.cap_mbps(src, dst):
                    yield from (("", rtt_ms, log(value / by_window)) for value in values)

    def window(self, host: str) -> Window:
        """Return a receiver's window; that of hosts as they come if it was never seen receiving."""
        return self._windows.get(host) or Window(stock_window_mb(host), WINDOW_ERROR, 0)

    def cap_mbps(self, src: str, dst: str) -> float:
        """Return the lower cap of sender and receiver; infinity where none was seen."""
        return min(caps.get(host, inf) for caps, host in zip(self._caps, (src, dst), strict=True))

    def site(self, host: str) -> Site:
        """Return a host as a network has it, with its window."""
        mb, error, tests = self.window(host)
        origin = Origin("inferred", "flows-into-region", tests)
        window_mb = within(mb, error, origin) if tests else stock_window(host)
        return Site(host, "", NO_CAP_KNOWN, NO_CAP_KNOWN, window_mb)

    def link(self, src: str, dst: str) -> Link:
        """Return a link by its own tests, else by the receiver's window and both hosts' caps.

        Without a test or a round-trip time, that is a DataError.
        """
        rtt_ms, tested = self.rtt_ms(src, dst), self.steady_mbps(src, dst)
        if tested:
            flow = within(*tested, Origin("measured", TESTED))
        elif rtt_ms is None:
            raise DataError(
                f"Nothing is known of {src} -> {dst}: no test and no round-trip time. Measure the "
                "time, which costs nothing (ping)."
            )
        else:
            window_mb, cap = self.site(dst).window_mb, self.cap_mbps(src, dst)
            below, above = self._spreads.of("", rtt_ms)
            mbps, method = window_limited_mbps(window_mb.expected, rtt_ms), WINDOW
            if cap < mbps:
                mbps, method = cap, CAPS
            else:
                below = hypot(below, log(window_mb.expected / window_mb.low))
                above = hypot(above, log(window_mb.high / window_mb.expected))
            origin = Origin("inferred", method)
            flow = Estimate(mbps * exp(-below), mbps, mbps * exp(above), origin)
        rtt = exactly(nan if rtt_ms is None else rtt_ms)
        aggregate = flow.scaled(1 / MBPS_PER_GBPS)  # of one connection: nothing else is known
        return Link(src, dst, rtt, flow, aggregate, limited_by="window")

    def network(self, src: str, dst: str, relays: Iterable[str]) -> tuple[Network, dict[str, str]]:
        """Return the paths between two hosts as a network, and why relays are left out of it.

        If no path can be predicted, a DataError names the missing data.
        """
        left_out: dict[str, str] = {}
        links: list[Link] = []
        for relay in relays:
            if relay not in {src, dst}:
                try:
                    links += self.link(src, relay), self.link(relay, dst)
                except DataError as missing:
                    left_out[relay] = str(missing)
        try:
            links.append(self.link(src, dst))
        except DataError as missing:
            if not links:
                faults = dict.fromkeys([str(missing), *left_out.values()])
                raise DataError(" ".join(faults)) from None
        hosts = dict.fromkeys(end for link in links for end in (link.src, link.dst))
        sites = {host: self.site(host) for host in hosts}
        return Network(sites, LinkArray.of(links, sites)), left_out

    def limit(self, link: Link) -> str:
        """Say what limits a link."""
        method = link.per_flow_mbps.origin.method
        if method == TESTED:
            return "as tested"
        if method == CAPS:
            return "a cap that tests over short distances met"
        mb, _, tests = self.window(link.dst)
        where = f"from {tests} tests" if tests else "hosts as they come"
        return f"window of {mb:.2f} MB ({where}) over {link.rtt_ms.expected:.0f} ms"

    def _flat(self, end: int) -> set[str]:
        """Return the senders (0) or receivers (1) that are as fast over any distance: capped."""
        seen: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for pair, rate in self._medians.items():
            if rtt_ms := self.rtt_ms(*pair):
                seen[pair[end]].append((rtt_ms, rate))
        flat = set()
        for host, tests in seen.items():
            rtts, rates = zip(*tests, strict=True)
            far_apart = len(tests) >= FLAT_TESTS and max(rtts) >= FLAT_RTT_RATIO * min(rtts)
            if far_apart and max(rates) <= FLAT_RATE_RATIO * min(rates):
                flat.add(host)
        return flat

    def _fastest(self, *, near: bool) -> list[dict[str, float]]:
        """Return the fastest flow out of, and into, each host that its caps held back.

        With `near`, windows are not known yet, and every test over a short distance counts;
        otherwise those that stayed clearly below what the receiver's window allows. A rate that a
        host exceeded elsewhere is not its cap.
        """
        held: list[dict[str, float]] = [{}, {}]
        free: list[dict[str, float]] = [{}, {}]
        flat = self._flat(0), self._flat(1)
        for pair, rate in self._medians.items():
            rtt_ms = self.rtt_ms(*pair) or inf
            is_held = rtt_ms < CAP_BELOW_MS
            if is_held and not near:
                by_window = window_limited_mbps(self.window(pair[1]).window_mb, rtt_ms)
                is_held = rate < SHARE_OF_CAP * by_window
            for end, host in enumerate(pair):
                rates = (held if is_held or host in flat[end] else free)[end]
                rates[host] = max(rates.get(host, 0.0), rate)
        return [
            {host: rate for host, rate in caps.items() if rate >= freely.get(host, 0.0)}
            for caps, freely in zip(held, free, strict=True)
        ]

    def _calibrated(self) -> dict[str, Window]:
        """Return each receiver's window from the tests into it that no cap limited."""
        seen: dict[str, list[tuple[float, float, bool]]] = defaultdict(list)
        for (src, dst), values in self._steady.items():
            if (rtt_ms := self.rtt_ms(src, dst)) is not None:
                most_mbps = SHARE_OF_CAP * self.cap_mbps(src, dst)
                for rate in values:
                    window_mb = rate * rtt_ms / MBIT_PER_MB / MS_PER_S
                    is_free = rtt_ms >= CAP_BELOW_MS and rate <= most_mbps
                    seen[dst].append((rtt_ms, window_mb, is_free))
        windows = {}
        for host, tests in seen.items():
            largest_mb = max(window_mb for _, window_mb, _ in tests)
            if free := [(rtt_ms, window_mb) for rtt_ms, window_mb, is_free in tests if is_free]:
                rtts_ms, windows_mb = zip(*free, strict=True)
                windows[host] = Window(median(windows_mb), window_error(rtts_ms), len(free))
            elif largest_mb > stock_window_mb(host):  # it carried that much, so it is no smaller
                windows[host] = Window(largest_mb, WINDOW_ERROR, 1)
        return windows


def check_positive(field: str, value: float) -> None:
    """Refuse a value that is not a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(field, "is not a number", value=value)
    if not (isfinite(value) and value > 0):
        raise InputError(field, "must be a positive number", value=value)
