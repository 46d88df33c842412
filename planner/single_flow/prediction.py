"""The throughput of one TCP flow, direct and through relays that split it, from direct tests alone.

No relay need ever have run. The receiver's window, ``W / RTT``, and caps limit a flow; a relay that
ends one connection and opens another makes two flows with shorter round trips, of which the slower
one counts. The relay's window comes from direct tests into it. Rates, bounds and gains are those
that :mod:`planner.transfer` finds for one connection of one VM, on a network made of the tests.

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
from math import isnan
from typing import Literal

import numpy as np

from planner.model.errors import InputError
from planner.model.link import Link
from planner.model.pricing import FlatPrices
from planner.model.throughput import LEAST_SHARE, MBIT_PER_MB, flow_ramp_up_s
from planner.model.units import MBPS_PER_GBPS, MS_PER_S
from planner.single_flow.flow_tests import FlowEvidence, FlowTest, Pair, check_positive
from planner.solvers.joint import Risk, compared
from planner.transfer.options import Option
from planner.transfer.request import TransferRequest
from planner.transfer.search import TransferSearch

__all__ = ["FlowAnswer", "FlowPrediction", "FlowTest", "predict"]


@dataclass(frozen=True, slots=True)
class FlowPrediction:
    """The throughput of one flow on a path."""

    hosts: tuple[str, ...]  # two for direct, three through a relay
    throughput_mbps: float
    throughput_mbps_low: float
    throughput_mbps_high: float
    """Mean over the duration asked for, or the steady rate."""
    steady_mbps: float  # once it is up to speed
    rtt_ms: float | None  # sum of the links'; None where a link's is not known
    bottleneck: str  # the link that limits it, and why


@dataclass(frozen=True, slots=True)
class FlowAnswer:
    """Direct or a relay, for one flow, by the rule of :mod:`planner.solvers.joint`.

    `gain`, `gain_low`, `gain_high`: of the best relay over direct, in throughput; its 90 % range,
    where errors that both paths share cancel.
    """

    verdict: Literal["direct", "relay"]  # which has less expected regret, at the margin asked for
    direct: FlowPrediction | None  # None where nothing is known of the path
    relays: tuple[FlowPrediction, ...]  # fastest first
    gain: float | None
    gain_low: float | None
    left_out: Mapping[str, str]  # relay to why its path cannot be predicted
    gain_high: float | None = None
    probability: float | None = None  # that it is at least the margin

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

    Where many questions rest on the same direct tests, make :class:`.FlowEvidence` of them once;
    `rtts_ms` are those of links without a test, or in place of the tests'. `relays` are the hosts
    that may relay, all others if left out; `duration_s` is the length of the test or transfer from
    a cold start, and without it rates are steady ones. A relay must gain the margin to be
    preferred: 0 asks which is faster at all, 0.1 is ten percent, which plans ask for unless told.

    A figure out of range, or a host that relays for itself, is an InputError. If no path can be
    predicted, a DataError names the missing data.
    """
    request = TransferRequest(
        src, dst, objective="time", connections=1, vms=1, margin=margin, risk=risk
    )
    if duration_s is not None:
        check_positive("duration_s", duration_s)
    if rtts_ms and isinstance(tests, FlowEvidence):
        raise InputError("rtts_ms", "belong to the evidence", remedy="Give them when making it.")
    evidence = tests if isinstance(tests, FlowEvidence) else FlowEvidence(tests, rtts_ms)
    among = evidence.hosts if relays is None else tuple(dict.fromkeys(relays))
    if relays is not None and {src, dst} & set(among):
        raise InputError("relays", "name an end of the transfer", value=list(among))
    network, left_out = evidence.network(src, dst, among)
    search = TransferSearch(request, network, FlatPrices(tuple(network.sites)))
    options = [option for path in search.transfer.paths if (option := search.on_path(path))]
    paths = [(_predicted(option, evidence, duration_s), option) for option in options]
    found = sorted((one for one in paths if one[1].relays), key=lambda one: -one[0].throughput_mbps)
    direct = next((one for one in paths if not one[1].relays), None)
    gain = None
    if direct and found:  # as plans compare, by means over the duration in place of steady rates
        (path, option), (over, other) = found[0], direct
        expected = path.throughput_mbps / over.throughput_mbps
        steady = option.allocation.rate_gbps / other.allocation.rate_gbps
        ratios = option.rates_gbps / other.rates_gbps * (expected / steady)
        gain = compared(expected, np.asarray(ratios), margin, risk)
    return FlowAnswer(
        "relay" if direct is None or (gain and gain.worth and gain.expected > 1) else "direct",
        direct and direct[0],
        tuple(path for path, _ in found),
        gain and gain.expected,
        gain and gain.low,
        left_out,
        gain and gain.high,
        gain and gain.probability,
    )


def _predicted(option: Option, evidence: FlowEvidence, duration_s: float | None) -> FlowPrediction:
    """Predict a test over one path of a transfer."""
    figures, (path,) = option.figures, option.allocation.flows
    links = [figures.network.link(*pair) for pair in figures.pairs_of(path)]
    slowest = min(links, key=lambda link: link.per_flow_mbps.expected)
    steady, rtt_ms = option.allocation.rate_gbps * MBPS_PER_GBPS, figures.path_rtt_ms(path)
    mean = steady if duration_s is None else _mean_mbps(links, duration_s)
    low, high = (option.rate_at(bound) * MBPS_PER_GBPS * mean / steady for bound in ("low", "high"))
    hosts = (links[0].src, *(link.dst for link in links))
    limit = f"{slowest.src} -> {slowest.dst}: {evidence.limit(slowest)}"
    known_ms = None if isnan(rtt_ms) else rtt_ms
    return FlowPrediction(hosts, mean, low, high, steady, known_ms, limit)


def _mean_mbps(links: Sequence[Link], duration_s: float) -> float:
    """Return the mean rate of a test from a cold start; see the module's docstring."""
    alone = np.array([link.per_flow_mbps.expected for link in links])
    rtts_ms = np.nan_to_num([link.rtt_ms.expected for link in links])
    lost_s, as_slowest_s = (
        flow_ramp_up_s(mbps * rtts_ms / MS_PER_S / MBIT_PER_MB, rtts_ms)
        for mbps in (alone, alone.min())
    )
    # A link's predecessors must bring the rate of the slowest first.
    lost_s[1:] = np.maximum(lost_s[1:], np.maximum.accumulate(as_slowest_s)[:-1])
    return float((alone * np.maximum(LEAST_SHARE, 1.0 - lost_s / duration_s)).min())
