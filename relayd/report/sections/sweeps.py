"""UDP at growing rates: what arrives of what is sent, and what a path carries at best."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from probes.analysis.evidence import TooFewError
from probes.analysis.rate_sweep import FEWEST_RATES, RateSweep, rate_sweep
from relayd.report.data import ReportData
from relayd.report.document import Section, Table


def sweeps(data: ReportData) -> Section:
    """Answer where what is received stops following what is sent."""
    section = Section(
        "sweeps",
        "What arrives of what is sent?",
        "UDP tests of one link at growing rates: received against truly sent, the sender's cap, "
        "the flattening edge and the penalty edge (Network throughput in Amazon EC2, Computer "
        "Networks 2015); the best 5 s of any test as the path's capacity (Computer Networks 2016).",
    )
    rates: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    best: dict[tuple[str, str], tuple[float, bool]] = {}
    for test in data.detailed_tests("udp_mbps"):
        section.samples += 1
        link = test.src, test.dst
        sent, received, asked = (
            float(told) if isinstance(told := test.detail.get(name), int | float) else None
            for name in ("offered_mbps", "mean_mbps", "asked_mbps")
        )
        received = test.value if received is None else received
        if sent is not None:
            rates[link].append((asked or sent, sent, received))
        bound = test.detail.get("lower_bound") is not False
        best[link] = max(best.get(link, (0.0, True)), (test.value, bound))
    _say_capacities(section, best)
    found: list[tuple[str, str, RateSweep]] = []
    for (src, dst), steps in rates.items():
        try:
            found.append((src, dst, rate_sweep(*np.array(steps).T)))
        except TooFewError:
            continue
    if not found:
        section.statements.append(
            f"No link was tested at {FEWEST_RATES} sending rates: `relayd probe --udp-rates 12` "
            "does that; files of `iperf3 -u -b RATE -J` can be imported."
        )
    else:
        _say_sweeps(section, found)
    section.concluded = bool(section.figures)
    return section


def _say_capacities(section: Section, best: dict[tuple[str, str], tuple[float, bool]]) -> None:
    if not best:
        return
    reached = [mbps for mbps, bound in best.values() if not bound]
    section.figures["capacity"] = [
        {"src": src, "dst": dst, "mbps": mbps, "is_lower_bound": bound}
        for (src, dst), (mbps, bound) in best.items()
    ]
    over = ""
    if reached:
        over = f", {min(reached):,.0f} to {max(reached):,.0f} Mbit/s"
    section.statements.append(
        f"Of {len(best)} links, tests of {len(reached)} reached the capacity of the path{over}; on "
        "the others all that was sent arrived, so their figure is a lower bound."
    )


def _say_sweeps(section: Section, found: list[tuple[str, str, RateSweep]]) -> None:
    section.figures["sweeps"] = [
        {
            "src": src,
            "dst": dst,
            "rates": sweep.rates,
            "sender_cap_mbps": sweep.sender_cap_mbps,
            "flattening_edge_mbps": sweep.flattening_edge_mbps,
            "flat_mbps": sweep.flat_mbps,
            "penalty_edge_mbps": sweep.penalty_edge_mbps,
        }
        for src, dst, sweep in found
    ]
    flat = sum(sweep.flattening_edge_mbps is not None for _, _, sweep in found)
    falling = sum(sweep.penalty_edge_mbps is not None for _, _, sweep in found)
    section.statements.append(
        f"Of {len(found)} links tested at growing rates, what is received flattens on {flat}, and "
        f"falls again beyond a penalty edge on {falling}."
    )

    def cell(mbps: float | None) -> str:
        return "not reached" if mbps is None else f"{mbps:,.0f}"

    section.tables.append(
        Table(
            "Edges of what is received, Mbit/s sent",
            ("from", "to", "rates", "sender's cap", "flattening", "penalty"),
            tuple(
                (
                    src,
                    dst,
                    str(sweep.rates),
                    cell(sweep.sender_cap_mbps),
                    cell(sweep.flattening_edge_mbps),
                    cell(sweep.penalty_edge_mbps),
                )
                for src, dst, sweep in found
            ),
        )
    )
