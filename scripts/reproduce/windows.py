"""The paper's points on TCP windows, each at two settings of the lab or more.

Windows are those that receivers advertise, held by the lab to the segment.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.lab_measuring import Transfer, goodputs_mbps
from probes.lab.controller import Lab
from scripts.reproduce.laboratory import (
    EC2_PAIRS,
    FLOWS,
    OTHERS,
    ec2_gains,
    flow_matrix,
    laboratory,
    measured,
    one_after_the_other,
)
from scripts.reproduce.point import Point, other_relays

EAST, WEST = "aws:us-east-1", "aws:us-west-2"
THERE_MBPS, BACK_MBPS = 146.0, 56.0
"""Oregon to Virginia, and back (3.2.1)."""
PAPER_MB, NEEDED_MB, ENOUGH_MB = 7.0, 12.5, 50.0
"""Windows: the paper's; ten times that of EC2 in the lab; a second's half at 1 Gbit/s, nearly."""
CENTRE = "gcp:us-central1"
TO_CENTRE = [
    *("gcp:us-east1", "gcp:europe-west1", "gcp:asia-northeast1", "gcp:asia-east1"),
    "gcp:asia-southeast1",
]
LOSS_PCT = 2.0
"""Limits a flow to about 9 segments (Mathis et al. 1997), half of EC2's window at lab scale."""


def window_points() -> list[Point]:
    """Measure the effects of windows (needs root, takes seven minutes)."""
    with laboratory("t2.micro") as lab:
        return measured(lab, _one_way, _towards_centre, _raised_on_ec2, _relays)


def _set_windows(lab: Lab, regions: Sequence[str], window_mb: float) -> None:
    for region in regions:
        lab.set_host(region, {"window_kb": 1000 * window_mb * lab.topology().scale})


def _one_way(lab: Lab) -> list[Point]:
    """Lower the window of one direction to what the paper's slower figure needs."""
    topology = lab.topology()
    window_kb = topology.sites[topology.index(WEST)].window_bytes / 1000 * BACK_MBPS / THERE_MBPS
    lab.set_link(EAST, WEST, {"window_kb": window_kb}, one_way=True)
    ways = ((WEST, EAST), (EAST, WEST))
    one, many = (
        [one_after_the_other(lab, [src], dst, flows, 5, 2)[0] for src, dst in ways]
        for flows in (1, FLOWS)
    )
    lab.clear()
    basis = "1 pair both ways, iperf3,"
    setting = f"for 5 s, a window of {window_kb / 1000 / topology.scale:.2f} MB"
    return [
        Point(
            f"{one[0]:.0f} and {one[1]:.0f} Mbit/s",
            abs(one[0] / THERE_MBPS - 1) <= 0.1 and abs(one[1] / BACK_MBPS - 1) <= 0.1,
            "both within 10 % (the window is from these figures)",
            f"{basis} one connection {setting}",
        ),
        Point(
            f"{many[0]:.0f} and {many[1]:.0f} Mbit/s",
            max(many) / min(many) <= 1.05,
            "within 5 % of each other",
            f"{basis} {FLOWS} connections {setting}",
        ),
    ]


def _towards_centre(lab: Lab) -> list[Point]:
    """Measure one flow into a region of Google at growing windows, and many."""
    basis = f"{len(TO_CENTRE)} sources, iperf3,"
    usual = one_after_the_other(lab, TO_CENTRE, CENTRE, 1, 4, 4)
    found = []
    for window_mb in (PAPER_MB, ENOUGH_MB):
        _set_windows(lab, [CENTRE], window_mb)
        raised = one_after_the_other(lab, TO_CENTRE, CENTRE, 1, 4, 4)
        found.append(
            Point(
                f"{min(raised):.0f} to {max(raised):.0f} Mbit/s; {min(usual):.0f} to "
                f"{max(usual):.0f} with the usual 3 MB",
                min(raised) >= 0.9 * max(raised),
                "the slowest within 10 % of the fastest",
                f"{basis} one connection for 4 s",
            )
        )
    lab.clear()
    many = one_after_the_other(lab, TO_CENTRE, CENTRE, FLOWS, 4, 4)
    here, alike = f"{min(many):.0f} to {max(many):.0f} Mbit/s", max(many) / min(many) <= 1.05
    criterion = "within 5 % of each other (the cap is the paper's)"
    return [*found, Point(here, alike, criterion, f"{basis} {FLOWS} connections for 4 s")]


def _raised_on_ec2(lab: Lab) -> list[Point]:
    """Raise windows on EC2: where the window is the limit, and where loss is."""
    topology = lab.topology()
    transfers = [Transfer(topology.index(src), topology.index(dst)) for src, dst in EC2_PAIRS]
    found = []
    for loss_pct, seconds in ((0.0, 25), (LOSS_PCT, 60)):
        by_window = []
        for window_mb in (None, PAPER_MB):
            lab.clear()
            for src, dst in EC2_PAIRS:
                lab.set_link(src, dst, {"loss_pct": loss_pct})
                if window_mb is not None:
                    _set_windows(lab, [dst], window_mb)
            by_window.append(goodputs_mbps(lab, transfers, seconds, 5))
        rises = [after / before for before, after in zip(*by_window, strict=True)]
        found.append(
            Point(
                f"{min(rises):.2f}x to {max(rises):.2f}x",
                max(rises) <= 1.25,
                "no flow by more than 25 %",
                f"{len(rises)} pairs, iperf3, one connection for {seconds} s",
            )
        )
    lab.clear()
    return found


def _relays(lab: Lab) -> list[Point]:
    """Measure relays of other clouds, whose windows are raised."""
    found = []
    for window_mb in (PAPER_MB, NEEDED_MB):
        _set_windows(lab, OTHERS, window_mb)
        names, rates = flow_matrix(lab)
        gained = ec2_gains(rates, len(names) - len(OTHERS))
        basis = (
            f"{gained['pairs']} pairs, iperf3, one connection for 5 s, "
            f"{len(OTHERS)} relays of other clouds"
        )
        found.append(other_relays(gained, basis))
    lab.clear()
    return found
