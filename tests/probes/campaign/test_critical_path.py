"""The time of a campaign that its tools alone would take."""

from __future__ import annotations

import pytest

from probes.campaign.engine import critical_path_s
from probes.campaign.tasks import CampaignLimits, Probe, ProbeOutcome, ProbeTask


def outcome(pair: str, busy_s: float, stage: str = "aggregate 1") -> ProbeOutcome:
    phase = "rtt" if stage == "rtt" else "aggregate"
    task = ProbeTask(phase, ((pair[0], pair[1]),), 1, busy_s)  # type: ignore[arg-type]
    return ProbeOutcome(Probe(1, stage, task), busy_s=busy_s)


def test_probes_wait_for_hosts_seats_and_stages() -> None:
    apart = [outcome("AB", 5.0), outcome("CD", 4.0)]
    shared = [*apart, outcome("AC", 3.0)]
    assert critical_path_s([], CampaignLimits()) == 0
    assert critical_path_s(apart, CampaignLimits()) == 5
    assert critical_path_s(shared, CampaignLimits()) == 8
    assert critical_path_s(shared, CampaignLimits(at_once=1)) == 12
    assert critical_path_s([*shared, outcome("EF", 2.0, "aggregate 2")], CampaignLimits()) == 10
    failed = outcome("AB", 0.0)
    assert critical_path_s([failed, *apart], CampaignLimits()) == 5


@pytest.mark.parametrize(("of_host", "at_once", "seconds"), [(4, 64, 4.0), (8, 64, 2.0), (8, 2, 8)])
def test_pings_share_their_sender(of_host: int, at_once: int, seconds: float) -> None:
    pings = [outcome(f"A{peer}", 2.0, "rtt") for peer in "BCDEFGHI"]
    limits = CampaignLimits(pings_of_host=of_host, pings_at_once=at_once)
    assert critical_path_s(pings, limits) == seconds
