"""The throughput of one TCP flow, direct and through relays that split it, from direct tests alone.

No relay need ever have run. The receiver's window, ``W / RTT``, and caps limit a flow; a relay that
ends one connection and opens another makes two flows with shorter round trips, of which the slower
one counts. The relay's window comes from direct tests into it.

**Start-up.** Link *i* alone reaches ``R_i = min(W_i / RTT_i, C_i)`` and loses
``L_i(R) = (log2(R RTT_i / 14.6 kB) - 1) RTT_i`` on the way to a rate *R*
(:func:`planner.model.throughput.flow_ramp_up_s`). The second link starts with the first byte that
arrives and both speed up at the same time, so their losses do not add: in a test of *T* seconds the
first link brings ``R_1 (T - L_1(R_1))`` and the second can carry ``R_2 (T - max(L_1(R),
L_2(R_2)))``, *R* the lower of both rates; what waits at the relay meanwhile follows as fast as the
second link goes. The lesser of the two arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, hypot
from typing import Literal

import numpy as np

from planner.model.errors import DataError, InputError
from planner.model.throughput import LEAST_SHARE, MBIT_PER_MB, flow_ramp_up_s, window_limited_mbps
from planner.single_flow.flow_tests import FlowEvidence, FlowTest, Pair, check_positive
from planner.solvers.joint import (
    BOUND_SCORE,
    Draws,
    Gain,
    Risk,
    between,
    compared,
    multiples,
    spread_of,
)

__all__ = ["FlowAnswer", "FlowPrediction", "FlowTest", "predict"]


@dataclass(frozen=True, slots=True)
class FlowPrediction:
    """The throughput of one flow on a path.

    Attributes
    ----------
    hosts : tuple of str
        Two for direct, three through a relay.
    throughput_mbps, throughput_mbps_low, throughput_mbps_high : float
        Mean over the duration asked for, or the steady rate.
    steady_mbps : float
        Once it is up to speed.
    rtt_ms : float | None
        Sum of the links'; None where a link's is not known.
    bottleneck : str
        The link that limits it, and why.
    """

    hosts: tuple[str, ...]
    throughput_mbps: float
    throughput_mbps_low: float
    throughput_mbps_high: float
    steady_mbps: float
    rtt_ms: float | None
    bottleneck: str


@dataclass(frozen=True, slots=True)
class FlowAnswer:
    """Direct or a relay, for one flow, by the rule of :mod:`planner.solvers.joint`.

    Attributes
    ----------
    verdict : str
        Which has less expected regret, at the margin asked for.
    direct : FlowPrediction | None
        None where nothing is known of the path.
    relays : tuple of FlowPrediction
        Fastest first.
    gain, gain_low, gain_high : float | None
        Of the best relay over direct, in throughput; its 90 % range, where errors that both paths
        share cancel.
    probability : float | None
        That it is at least the margin.
    left_out : mapping
        Relay to why its path cannot be predicted.
    """

    verdict: Literal["direct", "relay"]
    direct: FlowPrediction | None
    relays: tuple[FlowPrediction, ...]
    gain: float | None
    gain_low: float | None
    left_out: Mapping[str, str]
    gain_high: float | None = None
    probability: float | None = None

    @property
    def chosen(self) -> FlowPrediction:
        """The path of the verdict."""
        path = self.relays[0] if self.verdict == "relay" else self.direct
        assert path is not None
        return path


def predict(
    tests: Iterable[FlowTest] | FlowEvidence,
    src: str,
    dst: str,
    *,
    rtts_ms: Mapping[Pair, float | None] = {},
    relays: Sequence[str] | None = None,
    duration_s: float | None = None,
    margin: float = 0.0,
    risk: Risk = "neutral",
) -> FlowAnswer:
    """Predict the throughput of one flow direct and through each relay, and choose.

    Parameters
    ----------
    tests : iterable of FlowTest, or FlowEvidence
        Direct tests between any hosts. Where many questions rest on the same tests, make the
        evidence once.
    rtts_ms : mapping, optional
        ``(a, b)`` to the round-trip time in ms, of links without a test or in place of the tests'.
    relays : sequence of str, optional
        Hosts that may relay; all others of the tests and times if left out.
    duration_s : float, optional
        Length of the test or transfer from a cold start; the steady rate if left out.
    margin : float
        Gain that a relay must have to be preferred; 0.1 is ten percent.
    risk : Risk
        How to weigh the regret of having relayed in vain
        (:data:`planner.solvers.joint.RISK_WEIGHTS`).

    Raises
    ------
    InputError
        If a figure is out of range or a host relays for itself.
    DataError
        If neither the direct path nor any relay's can be predicted; names the missing data.
    """
    if src == dst:
        raise InputError("dst", "is the source itself", value=dst)
    if duration_s is not None:
        check_positive("duration_s", duration_s)
    if not 0 <= margin < 100:
        raise InputError("margin", "must be from 0 to 100", value=margin)
    if rtts_ms and isinstance(tests, FlowEvidence):
        raise InputError("rtts_ms", "belong to the evidence", remedy="Give them when making it.")
    evidence = tests if isinstance(tests, FlowEvidence) else FlowEvidence(tests, rtts_ms)
    among = evidence.hosts if relays is None else tuple(dict.fromkeys(relays))
    if relays is not None and {src, dst} & set(among):
        raise InputError("relays", "name an end of the transfer", value=list(among))
    left_out: dict[str, str] = {}
    found = []
    for relay in among:
        if relay in {src, dst}:
            continue
        try:
            found.append(_path(evidence, (src, relay, dst), duration_s))
        except DataError as missing:
            left_out[relay] = str(missing)
    found.sort(key=lambda path: -path.throughput_mbps)
    try:
        direct = _path(evidence, (src, dst), duration_s)
    except DataError as missing:
        if not found:
            raise DataError(" ".join(dict.fromkeys([str(missing), *left_out.values()]))) from None
        direct = None
    gain = _gain(evidence, direct, found[0], margin, risk) if direct and found else None
    return FlowAnswer(
        "relay" if direct is None or (gain and gain.worth) else "direct",
        direct,
        tuple(found),
        gain and gain.expected,
        gain and gain.low,
        left_out,
        gain and gain.high,
        gain and gain.probability,
    )


def _gain(
    evidence: FlowEvidence,
    direct: FlowPrediction,
    relayed: FlowPrediction,
    margin: float,
    risk: Risk,
) -> Gain:
    """Return the gain of a relay: each link has an error of its own, but a host only one window."""
    dimensions: dict[object, int] = {}

    def drawn(spreads: tuple[float, float], cause: object) -> Draws:
        return multiples(*spreads, dimensions.setdefault(cause, len(dimensions)))

    def drawn_mbps(path: FlowPrediction) -> Draws:
        limits = []
        for pair in pairwise(path.hosts):
            link = _link(evidence, *pair)
            mbps = link.steady_mbps * path.throughput_mbps / path.steady_mbps
            own, of_window = drawn(link.spreads, pair), drawn(link.window_spreads, pair[1])
            limits.append(mbps * own * of_window)
        return np.asarray(np.minimum.reduce(limits))

    of_direct = drawn_mbps(direct)
    ratios = drawn_mbps(relayed) / of_direct
    return compared(relayed.throughput_mbps / direct.throughput_mbps, ratios, margin, risk)


@dataclass(frozen=True, slots=True)
class _Link:
    """One link alone: its steady rate, how far off it may be, and what limits it.

    Spreads are standard deviations of its logarithm, below and above: of a test of this link, and
    of the receiver's window where that limits it, which all flows into the receiver share.
    """

    name: str
    steady_mbps: float
    spreads: tuple[float, float]
    rtt_ms: float | None
    limit: str
    window_spreads: tuple[float, float] = (0.0, 0.0)

    def ramp_up_s(self, rate_mbps: float) -> float:
        """Return the time lost getting up to a rate; 0 if the round-trip time is not known."""
        if self.rtt_ms is None:
            return 0.0
        return flow_ramp_up_s(rate_mbps * self.rtt_ms / 1000.0 / MBIT_PER_MB, self.rtt_ms)


def _path(
    evidence: FlowEvidence, hosts: tuple[str, ...], duration_s: float | None
) -> FlowPrediction:
    links = [_link(evidence, a, b) for a, b in pairwise(hosts)]
    slowest = min(links, key=lambda link: link.steady_mbps)
    steady = slowest.steady_mbps
    mean = steady if duration_s is None else _mean_mbps(links, duration_s)
    low, high = (bound * mean / steady for bound in _bounds_mbps(links))
    times = [link.rtt_ms for link in links if link.rtt_ms is not None]
    return FlowPrediction(
        hosts,
        mean,
        low,
        high,
        steady,
        sum(times) if len(times) == len(links) else None,
        f"{slowest.name}: {slowest.limit}",
    )


def _bounds_mbps(links: Sequence[_Link]) -> tuple[float, float]:
    """Return the 90 % range of later tests' rates on a path, from draws of links' errors."""
    (first, *others) = (
        (link.steady_mbps, *map(hypot, link.spreads, link.window_spreads)) for link in links
    )
    if not others:
        rate, below, above = first
        return rate * exp(-BOUND_SCORE * below), rate * exp(BOUND_SCORE * above)
    drawn = (
        rate * multiples(below, above, dimension)
        for dimension, (rate, below, above) in enumerate((first, *others))
    )
    return between(np.minimum.reduce(list(drawn)))


def _mean_mbps(links: Sequence[_Link], duration_s: float) -> float:
    """Return the mean rate of a test from a cold start; see the module's docstring."""
    most = min(link.steady_mbps for link in links)
    carried = []
    lost_s = 0.0  # until a link's predecessors bring the rate of the slowest
    for link in links:
        startup_s = max(lost_s, link.ramp_up_s(link.steady_mbps))
        carried.append(link.steady_mbps * max(LEAST_SHARE, 1.0 - startup_s / duration_s))
        lost_s = max(lost_s, link.ramp_up_s(most))
    return min(carried)


def _link(evidence: FlowEvidence, src: str, dst: str) -> _Link:
    """Return a link from its own tests, else from the receiver's window."""
    rtt_ms = evidence.rtt_ms(src, dst)
    name = f"{src} -> {dst}"
    if tested := evidence.steady_mbps(src, dst):
        steady, error = tested
        return _Link(name, steady, (spread_of(1.0, 1 + error),) * 2, rtt_ms, "as tested")
    if rtt_ms is None:
        raise DataError(
            f"Nothing is known of {name}: no test and no round-trip time. Measure the time, which "
            "costs nothing (ping)."
        )
    window = evidence.window(dst)
    by_window = window_limited_mbps(window.window_mb, rtt_ms)
    cap = evidence.cap_mbps(src, dst)
    below, above = evidence.spread(rtt_ms)
    spreads = below / BOUND_SCORE, above / BOUND_SCORE
    if cap < by_window:
        return _Link(name, cap, spreads, rtt_ms, "a cap that tests over short distances met")
    where = f"from {window.tests} tests" if window.tests else "Linux's default"
    limit = f"window of {window.window_mb:.2f} MB ({where}) over {rtt_ms:.0f} ms"
    of_window = (spread_of(1.0, 1 + window.error),) * 2
    return _Link(name, by_window, spreads, rtt_ms, limit, of_window)
