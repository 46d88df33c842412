"""The paper's points on stability over time, in the lab: one VM's cap, and one flow's rate.

The paper has 500 s of connections that come and go (Figure 2b), and boxes of 60 s over a day
(Figure 1b). Here minutes stand for them: what the lab is made of does not change by itself, so that
more time would show the same.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.lab_measuring import Transfer, iperf3_reports
from planner.transfer.all_pairs import Floats
from probes.analysis.evidence import spread
from probes.lab.controller import Lab
from probes.lab.topology import GOODPUT_SHARE
from scripts.reproduce.laboratory import GOOGLE, laboratory, measured
from scripts.reproduce.point import Point

PEERS = ("gcp:us-east1", "gcp:europe-west1", "gcp:asia-northeast1", "gcp:asia-east1")
PHASES = 2 * len(PEERS) - 1
"""One peer more takes part in each, then one less."""
AMAZON = "aws:us-east-1"
PHASE_S, SETTLING_S = 12.0, 6.0
"""Time with the same regions, and its first part, left out while connections come up."""
FLOWS = 8
"""To each region. The paper's 50 would open one after the other behind a full queue, for half a
minute; these fill the cap as well."""
ROUND_TRIPS, QUEUE_S = FLOWS + 4, 0.2
"""Before the first byte, and what each waits once others fill the cap."""
VIRGINIA, CALIFORNIA = "aws:us-east-1", "aws:us-west-1"
BOX_S = 60
DYNAMIC = 0.1
"""Of the median: a box (quartile to quartile) that is wider shows a rate that varies."""


def minute_points() -> list[Point]:
    """Measure the variation of rates over minutes (needs root, takes five minutes)."""
    with laboratory("t2.micro") as lab:
        return measured(lab, _shared_caps, _one_flow)


def _shared_caps(lab: Lab) -> list[Point]:
    return [
        *_shared(lab, GOOGLE, inwards=False),
        *_shared(lab, GOOGLE, inwards=True),
        *_shared(lab, AMAZON, inwards=False),
    ]


def _shared(lab: Lab, vm: str, *, inwards: bool) -> list[Point]:
    """Let connections with regions come one region after the other, and go again."""
    each, seconds_cov = _watch(lab, vm, inwards=inwards)
    together, peers = each.sum(1), len(PEERS)
    present = np.array([min(phase + 1, PHASES - phase) for phase in range(PHASES)])
    takes_part = np.arange(peers) < present[:, None]
    share = (each / together[:, None] * present[:, None])[takes_part]
    first = each[:, 0]
    adapts = np.all(np.diff(first[:peers]) < 0) and np.all(np.diff(first[peers - 1 :]) > 0)
    return [
        Point(
            f"{together.min():.0f} to {together.max():.0f} Mbit/s in {PHASES} phases; from second "
            f"to second it varies by {seconds_cov:.1%}",
            bool(together.max() / together.min() - 1 <= 0.05),
            "phases within 5 % of each other",
            f"{PHASES} phases of {PHASE_S:g} s, 1 to {peers} regions with {FLOWS} connections each",
        ),
        Point(
            f"the first region has {', '.join(f'{rate:.0f}' for rate in first)} Mbit/s; a region "
            f"has {share.min():.2f} to {share.max():.2f} of an equal part",
            bool(adapts),
            "the first gets less with each that comes and more with each that goes",
            f"{PHASES} phases of {PHASE_S:g} s",
        ),
    ]


def _watch(lab: Lab, vm: str, *, inwards: bool) -> tuple[Floats, float]:
    """Watch one VM while peers come and go.

    Returns
    -------
    array, shape (phases, peers)
        Mean rates in Mbit/s of the cloud.
    float
        Coefficient of variation of all together from second to second, within phases.
    """
    topology = lab.topology()
    source, sinks = topology.index(vm), [topology.index(peer) for peer in PEERS]
    options = ("-R",) if inwards else ()
    opening_s = [
        ROUND_TRIPS * (topology.rtt_ms[source][sink] / 1e3 + QUEUE_S * (number > 0))
        for number, sink in enumerate(sinks)
    ]
    begun_s = time.monotonic() + max(opening_s)

    def send(number: int) -> None:
        begins_s = begun_s + PHASE_S * number - opening_s[number]
        time.sleep(max(0.0, begins_s - time.monotonic()))
        transfer = Transfer(source, sinks[number], FLOWS, options)
        iperf3_reports(lab, [transfer], PHASE_S * (PHASES - 2 * number))

    with ThreadPoolExecutor() as pool:
        sending = [pool.submit(send, number) for number in range(len(sinks))]
        seconds = _each_second(lab, begun_s, sinks, inwards=inwards)
        for one in sending:
            one.result()
    rates = seconds[:, 1:] * GOODPUT_SHARE / topology.scale
    phase_of, into_s = np.divmod(np.round(seconds[:, 0]), PHASE_S)
    settled = [(phase_of == phase) & (into_s >= SETTLING_S) for phase in range(PHASES)]
    covs = [spread(rates[some].sum(1))["cov"] for some in settled]
    return np.array([rates[some].mean(0) for some in settled]), float(np.mean(covs))


def _each_second(lab: Lab, begun_s: float, sinks: list[int], *, inwards: bool) -> Floats:
    """Return the traffic between a VM and each peer, by the lab's own counters.

    Returns
    -------
    array, shape (n, 1 + peers)
        Seconds since the beginning, and Mbit/s on the wire.
    """
    # Peers exchange data with this VM alone, and acknowledgements the other way.
    name = "sent_bytes" if inwards else "received_bytes"
    time.sleep(max(0.0, begun_s - time.monotonic()))
    found, before = [], lab.status()
    for second in range(1, round(PHASE_S * PHASES) + 1):
        time.sleep(max(0.0, begun_s + second - time.monotonic()))
        after = lab.status()
        took_s = after["monotonic_s"] - before["monotonic_s"]
        moved = [after["sites"][site][name] - before["sites"][site][name] for site in sinks]
        found.append([before["monotonic_s"] - begun_s, *(b * 8 / took_s / 1e6 for b in moved)])
        before = after
    return np.array(found)


def _one_flow(lab: Lab) -> list[Point]:
    """Measure one flow for a box of the paper's figure: nothing lost, and 1 % of packets."""
    topology = lab.topology()
    # Reversed, so that it reports what arrives.
    transfer = Transfer(topology.index(CALIFORNIA), topology.index(VIRGINIA), 1, ("-R",))
    found = []
    for loss_pct in (0.0, 1.0):
        lab.set_link(VIRGINIA, CALIFORNIA, {"loss_pct": loss_pct}, one_way=True)
        (report,) = iperf3_reports(lab, [transfer], BOX_S, 5)
        rates = [
            interval["sum"]["bits_per_second"] / 1e6 / topology.scale
            for interval in report["intervals"]
            if not interval["sum"]["omitted"]
        ]
        low, middle, high = np.quantile(rates, (0.25, 0.5, 0.75))
        found.append(
            Point(
                f"{low:.0f} to {high:.0f} Mbit/s from quartile to quartile, median {middle:.0f}; "
                f"varies by {spread(rates)['cov']:.0%}",
                bool(high - low >= DYNAMIC * middle),
                f"the quartiles {DYNAMIC:.0%} of the median apart or more",
                f"1 pair, iperf3, one connection, {BOX_S} means of 1 s",
            )
        )
    lab.clear()
    return found
