"""Direct tests of single TCP flows, and the hosts' windows and caps that they show.

Hosts are any names: this module does not know regions, VM types or prices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite, log
from statistics import median
from typing import TypeAlias

from planner.model.errors import InputError
from planner.model.throughput import (
    DEFAULT_WINDOW_MB,
    LawSpread,
    window_from_flow_mb,
    window_limited_mbps,
)
from planner.single_flow.spreads import (
    DEVIATION_TO_90,
    WITHOUT_CAPS,
    FlowSpreads,
    later_test_error,
    window_error,
)

Pair: TypeAlias = tuple[str, str]

# Nearer tests meet a cap before the window fills (survey of February 2022).
CAP_BELOW_MS = 20.0
# One test at such a distance tells a receiver's window within 10 % in 99 % of draws from the same
# survey; farther ones lose much to slow start, nearer ones to caps.
BEST_MS = (60.0, 250.0)
SHARE_OF_CAP = 0.8
"""A flow above this share of a cap may be limited by it rather than by its window."""
# A window makes twice the distance half the rate. A host whose rate hardly differs over such
# distances, in so many tests, is held back by a cap.
FLAT_TESTS = 3
FLAT_RTT_RATIO = 2.0
FLAT_RATE_RATIO = 1.2
# Relative error of the window of a host never seen (receive buffers of 2 to 4 MB).
UNSEEN_ERROR = 0.33


@dataclass(frozen=True, slots=True)
class FlowTest:
    """One direct test of one TCP connection.

    Attributes
    ----------
    src, dst : str
        Sender and receiver.
    throughput_mbps : float
        Mean over the test, as the receiver counted it.
    rtt_ms : float | None
        Round-trip time of the path without load; None where it was not measured with it.
    duration_s : float | None
        Length of a test that began with slow start; None where slow start was left out.

    Raises
    ------
    InputError
        If a figure is not positive and finite, or both ends are the same.
    """

    src: str
    dst: str
    throughput_mbps: float
    rtt_ms: float | None = None
    duration_s: float | None = None

    def __post_init__(self) -> None:
        if self.src == self.dst:
            raise InputError("dst", "is the sender itself", value=self.dst)
        check_positive("throughput_mbps", self.throughput_mbps)
        if self.rtt_ms is not None:
            check_positive("rtt_ms", self.rtt_ms)
        if self.duration_s is not None:
            check_positive("duration_s", self.duration_s)


@dataclass(frozen=True, slots=True)
class Window:
    """A receiver's effective window from so many tests, none for Linux's default.

    The error is relative, at the 90th percentile; the noise of tests comes on top.
    """

    window_mb: float
    error: float
    tests: int


UNSEEN = Window(DEFAULT_WINDOW_MB, UNSEEN_ERROR, 0)


class FlowEvidence:
    """Evidence of direct tests: round-trip times, steady rates, receivers' windows, hosts' caps.

    Parameters
    ----------
    tests : iterable of FlowTest
    rtts_ms : mapping, optional
        ``(a, b)`` to a round-trip time in ms; it holds for both directions unless the other is
        given too, and comes before the times of tests.

    Raises
    ------
    InputError
        If a time is not positive and finite.
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
        for test in self.tests:
            self._steady[test.src, test.dst].append(self._steady_of(test))
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
        found = self._steady.get((src, dst))
        if not found:
            return None
        rate = median(found)
        deviation = DEVIATION_TO_90 * median(abs(value - rate) for value in found) / rate
        return rate, later_test_error(len(found), deviation)

    def spread(self, rtt_ms: float) -> LawSpread:
        """Return the spread, at a round-trip time, of tests around their windows' predictions."""
        return self._spreads.of("", rtt_ms)

    def _ratios(self) -> Iterator[tuple[str, float, float]]:
        """Yield the tests limited by windows, from which spreads are learned."""
        for (src, dst), values in self._steady.items():
            rtt_ms = self.rtt_ms(src, dst)
            if rtt_ms is not None and self.window(dst).tests:
                by_window = window_limited_mbps(self.window(dst).window_mb, rtt_ms)
                if by_window <= self.cap_mbps(src, dst):
                    yield from (("", rtt_ms, log(value / by_window)) for value in values)

    def window(self, host: str) -> Window:
        """Return a receiver's window; Linux's default for a host never seen receiving."""
        return self._windows.get(host, UNSEEN)

    def cap_mbps(self, src: str, dst: str) -> float:
        """Return the lower cap of sender and receiver; infinity where none was seen."""
        return min(caps.get(host, inf) for caps, host in zip(self._caps, (src, dst), strict=True))

    def _steady_of(self, test: FlowTest) -> float:
        rtt_ms = self.rtt_ms(test.src, test.dst)
        if rtt_ms is None or test.duration_s is None:
            return test.throughput_mbps
        window_mb = window_from_flow_mb(test.throughput_mbps, rtt_ms, test.duration_s)
        return window_limited_mbps(window_mb, rtt_ms)

    def _flat(self, end: int) -> set[str]:
        """Return the senders (0) or receivers (1) that are as fast over any distance: capped."""
        seen: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for pair, values in self._steady.items():
            rtt_ms = self.rtt_ms(*pair)
            if rtt_ms is not None:
                seen[pair[end]].append((rtt_ms, median(values)))
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
        for pair, values in self._steady.items():
            rtt_ms, rate = self.rtt_ms(*pair), median(values)
            is_held = rtt_ms is not None and rtt_ms < CAP_BELOW_MS
            if is_held and rtt_ms is not None and not near:
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
        found: dict[str, list[tuple[float, float]]] = defaultdict(list)
        least: dict[str, float] = defaultdict(float)
        for (src, dst), values in self._steady.items():
            rtt_ms = self.rtt_ms(src, dst)
            if rtt_ms is None:
                continue
            for rate in values:
                window_mb = rate * rtt_ms / 8000.0
                least[dst] = max(least[dst], window_mb)
                if rtt_ms >= CAP_BELOW_MS and rate <= SHARE_OF_CAP * self.cap_mbps(src, dst):
                    found[dst].append((rtt_ms, window_mb))
        windows = {}
        for host, largest in least.items():
            tests = found[host]
            if chosen := [one for one in tests if BEST_MS[0] <= one[0] <= BEST_MS[1]] or tests:
                error = window_error([rtt_ms for rtt_ms, _ in chosen])
                windows[host] = Window(median(w for _, w in chosen), error, len(chosen))
            elif largest > DEFAULT_WINDOW_MB:  # it carried that much, so it is no smaller
                windows[host] = Window(largest, UNSEEN_ERROR, 1)
        return windows


def check_positive(field: str, value: float) -> None:
    """Refuse a value that is not a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(field, "is not a number", value=value)
    if not (isfinite(value) and value > 0):
        raise InputError(field, "must be a positive number", value=value)
