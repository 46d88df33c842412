"""Models of throughput by window, round-trip time, caps and providers, and of short tests.

Constants were fitted to open measurements between cloud datacenters: a 63-region grid of
January 2022 (64 connections, 5 s) and a single-connection survey of February 2022 (10 s).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = Floats | float
N = TypeVar("N", float, Floats)

# Round trips until a bundle of connections, or a fixed transfer, is up to speed.
RAMP_UP_ROUND_TRIPS = 8.5
# Ten segments of 1460 bytes: the initial window of RFC 6928, in MB.
INITIAL_WINDOW_MB = 0.0146
# Receive window of a host never seen: Linux's default tcp_rmem maximum of 6 MiB, of which half
# is advertised (tcp_adv_win_scale 1).
DEFAULT_WINDOW_MB = 3.0
STOCK_WINDOWS_MB = {"aws": 1.6}
"""Of hosts as they come, where it is less: 64 connections into untuned EC2 VMs reached
``64 W / RTT`` with 1.5 to 1.7 MB (open data of the Skyplane project, 17 January 2022), and single
flows into t2.medium 1.56 to 1.64 MB (WANify)."""
STOCK_IN_FLIGHT_MB = {"gcp": 2.0}
"""Data in flight of a connection out of hosts as they come, where it is less than receivers
grant. Linux allows a sender 4 MiB (``tcp_wmem``), bookkeeping included; half of it is 2.1 MB. 64
connections out of untuned n2-standard-32 carried 1.8 to 2.2 MB each over more than 200 ms (the same
open data), those out of Azure's and AWS's VMs filled their receivers' windows."""
STOCK_RANGE_MB = (1.0, 4.0)
"""5th and 95th percentile of windows of hosts as they come, of a type that no one measured."""
STOCK_RANGES_MB = {"aws": (1.0, 2.0), "azure": (1.5, 4.0), "gcp": (1.5, 4.0)}
"""The same of providers whose hosts were measured: into EC2's 1.25 (t2.micro, 2017) to 1.9 MB, into
Google's 1.5 (from AWS) to 4 (e2-small), into Azure's 1.65 (from Google Cloud) to 3.1."""
TUNED_WINDOW_MB = (16.0, 32.0, 512.0)
"""Low, expected and high window of hosts whose ``tcp_rmem`` was raised: to 64 MiB in most guides,
to 1 GiB by Skyplane, of which half is advertised."""
MBIT_PER_MB = 8.0
# 5 s at 400 ms, the longest round trip between datacenters, still shows a third.
LEAST_SHARE = 0.2
_ITERATIONS = 9


def stock_window_mb(name: str) -> float:
    """Return the receive window of hosts as they come of the provider of a region or VM type."""
    return STOCK_WINDOWS_MB.get(name.partition(":")[0], DEFAULT_WINDOW_MB)


def ramp_up_s(rtt_ms: N) -> N:
    """Return the time that getting up to speed costs a transfer over one link, ``8.5 RTT``."""
    return RAMP_UP_ROUND_TRIPS * rtt_ms / 1000.0


def flow_ramp_up_s(window_mb: Numbers, rtt_ms: Numbers) -> Any:
    """Return the time that slow start costs one connection, ``c RTT``, ``c = log2(W / IW) - 1``.

    The window doubles each round trip from its initial size (RFC 6928), and what those round trips
    carry together is worth one of full speed.
    """
    doublings = np.log2(np.maximum(window_mb, INITIAL_WINDOW_MB) / INITIAL_WINDOW_MB)
    return np.maximum(0.0, doublings - 1.0) * rtt_ms / 1000.0


def flow_share_of_steady(window_mb: Numbers, rtt_ms: Numbers, duration_s: Numbers) -> Any:
    """Return the share of ``W / RTT`` that a short test of one connection shows.

    ``1 - c RTT / T`` (:func:`flow_ramp_up_s`); not below :data:`LEAST_SHARE`: a test that spent
    nearly all its time in slow start says little, and a tiny share would make much of its noise.
    """
    return np.maximum(LEAST_SHARE, 1.0 - flow_ramp_up_s(window_mb, rtt_ms) / duration_s)


def steady_rates(
    mbps: ArrayLike, rtt_ms: ArrayLike, duration_s: ArrayLike, *, one_flow: bool
) -> Floats:
    """Return the steady rates that correspond to cold tests, of one connection each or of many.

    Figures are of each test, or one for all. Where the time or the length is not known (not
    positive, or NaN), the rate stays as it is.
    """
    rates, rtts, lengths = map(np.asarray, np.broadcast_arrays(mbps, rtt_ms, duration_s))
    known = (rtts > 0) & (lengths > 0)
    # Of a test that took next to no time, the share is the least, without a warning.
    rtts, lengths = np.where(known, rtts, 0.0), np.where(known, np.maximum(lengths, 1e-9), inf)
    if not one_flow:
        steady = 1.0 - RAMP_UP_ROUND_TRIPS * rtts / 1000.0 / lengths
        return np.asarray(rates / np.maximum(LEAST_SHARE, steady))
    filled_mb, share = rates * rtts / MBIT_PER_MB / 1000.0, np.ones(rates.shape)
    for _ in range(_ITERATIONS):  # a contraction: the share depends on the window's logarithm
        share = flow_share_of_steady(filled_mb / share, rtts, lengths)
    return np.asarray(rates / share)


# ---- laws of many connections ------------------------------------------------------------------
# Laws and noise are of the grid of January 2022, spreads of that and of November's (one VM each of
# m5.8xlarge, D32_v5 and n2-standard-32; open data of the Skyplane project, Apache-2.0), corrected
# for slow start. Memories are from 976 pairs that both have: the correlation of a link's two
# residuals is ``1 - d^2 / (2 s^2)``, with ``d`` the standard deviation of its change and ``s`` that
# of the residuals, and falls as ``exp(-t / memory)``. Spreads and noise are natural logarithms of
# ratios, at the 5th and the 95th percentile. ``python -m scripts.fit_laws`` fits spreads and prints
# how often they hold in regions that are left out.

Providers: TypeAlias = tuple[str, str]

CLASSES_MS = (20.0, 40.0, 100.0, 200.0)
"""Links of two providers are of a class up to each distance, and of a last one beyond."""
LAW_CONNECTIONS = 64  # of the tests that the laws were fitted to


class LawSpread(NamedTuple):
    """The spread of later tests about what is expected, as logarithms of ratios.

    Down to the 5th and up to the 95th percentile.
    """

    below: float
    above: float


LAW_VM_EGRESS_GBPS = {"aws": 5.0, "azure": 16.0, "gcp": 7.0}
"""Caps of the VMs that the laws are of. Where distance does not matter, they were the limit."""
SPREAD_COUNTS_AS = 20
"""Links or tests, in a spread that is learned: those that ours stands for."""
FAR = 3.0
"""Times the spread: what is farther off is not of the class, or the test went wrong."""


def learned_spread(ratios: Iterable[float], ours: LawSpread) -> LawSpread:
    """Return the spread of a class of measurements about what is expected of them.

    `ratios` are logarithms of measured over expected; those far off count as :data:`FAR` spreads.
    Ours weighs as :data:`SPREAD_COUNTS_AS` of them.
    """
    widest = FAR * max(ours)
    return spread_of(sorted(min(widest, max(-widest, ratio)) for ratio in ratios), ours)


def spread_of(errors: Sequence[float], ours: LawSpread, regions: int | None = None) -> LawSpread:
    """Return :func:`learned_spread` of ratios that are sorted, none of them far off.

    Links of a few regions agree more than those of further regions will, so a spread that is
    narrower than ours counts as the number of `regions` that it is of, where that is given.
    """
    count = len(errors)
    if not count:
        return ours
    # Expected at ``share (n + 1)`` of the sorted values.
    low, high = np.quantile(errors, (0.05, 0.95), method="weibull").tolist()
    found = []
    for seen, usual in zip((-low, high), ours, strict=True):
        counts = count if regions is None or seen > usual else regions
        found.append(
            (counts * max(0.0, seen) + SPREAD_COUNTS_AS * usual) / (counts + SPREAD_COUNTS_AS)
        )
    return LawSpread(*found)


@dataclass(frozen=True, slots=True)
class AggregateLaw:
    """Saturated throughput of one VM pair, ``min(limit, scale (RTT / 100 ms)^exponent)``."""

    limit_gbps: float
    noise: float  # of one 5 s test about its link's level
    memory_years: float  # time in which what a measurement says of a link fades to 1/e
    below: tuple[float, ...]
    above: tuple[float, ...]
    """Of links about the law, the noise of one test included, in each of :data:`CLASSES_MS` and
    beyond: the distances of the 5th and the 95th percentile."""
    scale_gbps: float = inf
    exponent: float = 0.0  # 0 where distance does not matter

    def steady_gbps(self, rtt_ms: float | Floats) -> Floats:
        """Return the throughput at one round-trip time or many."""
        far_gbps = self.scale_gbps * (np.asarray(rtt_ms) / 100.0) ** self.exponent
        return np.minimum(self.limit_gbps, far_gbps)

    @property
    def holds_for_vms(self) -> bool:
        """Whether the cap of its VMs is the limit up to 100 ms, and not the path."""
        return self.scale_gbps >= self.limit_gbps

    def spread_of_class(self, number: int) -> LawSpread:
        """Return the spread in a class of distance."""
        return LawSpread(self.below[number], self.above[number])


def _law(
    limit_gbps: float, noise: float, memory_years: float, below: str, above: str, *far: float
) -> AggregateLaw:
    """Return a law whose spreads are written in percent."""
    down, up = (tuple(int(word) / 100 for word in words.split()) for words in (below, above))
    return AggregateLaw(limit_gbps, noise, memory_years, down, up, *far)


# Azure's egress to other clouds differs so much from pair to pair that its error exceeds the value:
# measuring it is the first advice. Of what January's tests told from Azure to Azure and from Google
# Cloud to AWS and Azure, November showed 0 to .13; of slow links to AWS .01 in the median.
AGGREGATE_LAWS: dict[Providers, AggregateLaw] = {
    ("aws", "aws"): _law(4.84, 0.01, 10.0, "5 3 2 6 16", "2 2 4 3 3"),
    ("aws", "azure"): _law(4.86, 0.015, 2.0, "2 2 2 2 7", "2 2 2 2 3"),
    ("aws", "gcp"): _law(5.02, 0.05, 0.5, "5 5 4 6 9", "2 2 2 3 3"),
    ("azure", "azure"): _law(15.68, 0.05, 0.25, "2 3 4 22 39", "34 9 45 41 13", 16.04, -0.15),
    ("azure", "aws"): _law(9.6, 0.1, 3.0, "25 72 94 111 82", "24 31 46 52 65", 4.3, -0.51),
    ("azure", "gcp"): _law(15.7, 0.15, 1.0, "49 38 59 73 64", "36 40 49 84 80", 7.9, -0.51),
    ("gcp", "aws"): _law(6.51, 0.1, 0.3, "16 21 36 46 67", "10 11 10 9 9"),
    ("gcp", "azure"): _law(6.87, 0.06, 0.3, "18 15 18 11 15", "5 5 5 6 7"),
    ("gcp", "gcp"): _law(6.84, 0.06, 0.5, "12 18 21 15 20", "5 6 6 7 8"),
}
# Over private addresses, where they differ from public ones (November 2022).
PRIVATE_LAWS: dict[Providers, AggregateLaw] = {
    ("gcp", "gcp"): _law(31.3, 0.06, 0.5, "24 19 53 57 43", "5 4 4 7 14", 34.4, -0.45)
}
PRIVATE_LAW_VM_EGRESS_GBPS = {"gcp": 32.0}
"""Caps of the VMs that these are of: n2-standard-32, all that its network card sends."""
UNKNOWN_SPREAD = LawSpread(0.7, 0.7)
UNKNOWN_NOISE = 0.1
UNKNOWN_MEMORY_YEARS = 1.0
"""Of providers without a law."""


INTERNET = LawSpread(2.3, 0.1)
"""Of links across partitions and within China, which no grid has: down to a tenth of the law. That
is a judgement, not a measurement."""


# ---- two readings of slow links -----------------------------------------------------------------
# Where many connections together stay below every cap and no one tried more of them, either the
# path ends there or each connection is slow. Paths that end somewhere do not know the round-trip
# time; connections under loss do. On the grid, whose hosts had windows of 1 GiB, rates out of Azure
# to other clouds fall as RTT^-0.45, those of all other pairs of providers hardly at all.

SLOW_WHERE_RATES_FALL = 2 / 3
"""Probability of slow connections between providers whose law falls with the round-trip time."""
SLOW_ELSEWHERE = 0.25
LIKELY = 0.95
"""Bounds hold under every reading that is more probable than the rest of this."""
READING_COUNTS_AS = 3
"""Ramps, in what is learned of a class of links: those that these probabilities stand for."""


RUN_SPREAD = 0.15
"""Of the logarithm of what a run carries about what the right reading predicts."""
MOST_TOLD = 20.0
FITS = 3.0
"""Spreads within which a run fits a reading; what fits neither was held by something else."""


def log_odds_slow(gbps: ArrayLike, if_slow: ArrayLike, if_ended: ArrayLike) -> Floats:
    """Return by how much runs make slow connections likelier: logarithms of factors of the odds.

    What a run carried is lognormal about what each reading predicts of it (Bayes); none makes a
    reading more than :data:`MOST_TOLD` times as likely.
    """
    slow, ended = (np.log(np.divide(gbps, one)) ** 2 / RUN_SPREAD**2 for one in (if_slow, if_ended))
    told = np.clip((ended - slow) / 2, -np.log(MOST_TOLD), np.log(MOST_TOLD))
    return np.where(np.minimum(slow, ended) <= FITS**2, told, 0.0)


def with_odds(probability: Any, log_odds: Any) -> Any:
    """Return a probability after evidence, given as the logarithm of a factor of its odds."""
    odds = np.exp(log_odds) * probability
    return odds / (odds + 1 - probability)


def slow_connections(providers: Providers, slow: float = 0, ended: float = 0) -> float:
    """Return the probability that connections are slow where a link's limit is not known.

    The mean of a beta distribution, after `slow` ramps that showed slow connections between these
    providers, and `ended` ramps that showed where the path ends; transfers count in part.
    """
    law = AGGREGATE_LAWS.get(providers)
    falls = law is not None and not law.holds_for_vms
    start = SLOW_WHERE_RATES_FALL if falls else SLOW_ELSEWHERE
    return (READING_COUNTS_AS * start + slow) / (READING_COUNTS_AS + slow + ended)


def crosses_border(src: str, dst: str) -> bool:
    """Return whether a link leads into mainland China or out of it, given both law domains.

    No model holds there: of pairs measured in 2019, more than 70 % were below 1 Mbit/s for over 5
    hours a day (Zhu et al., doi 10.1145/3379479), and what clouds' regions reach is not published.
    """
    return src.endswith(" china") != dst.endswith(" china")


def law_of(src: str, dst: str, address: str | None = None) -> AggregateLaw | None:
    """Return the law from one region's provider to another's; None where there is none.

    Ends are regions, or where laws find them (:attr:`.Region.law_domain`).
    """
    if crosses_border(src, dst):
        return None
    (a, _, of_a), (b, _, of_b) = (end.partition(":")[0].partition(" ") for end in (src, dst))
    law = AGGREGATE_LAWS.get((a, b))
    if of_a != of_b or "china" in {of_a, of_b}:  # no backbone is known to carry it
        below, above = ((bound,) * (len(CLASSES_MS) + 1) for bound in INTERNET)
        return law and replace(law, below=below, above=above)
    return (PRIVATE_LAWS.get((a, b)) if address == "private" else None) or law
