"""A frugal campaign on a small lab: true figures, good plans, little overhead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.campaign_check import check_campaign
from benchmarks.lab_check import Check
from planner import backbone
from probes.lab.controller import Lab
from probes.lab.profiles import load_profile, topology_of
from relayd.catalogue import built_in_folder, load_catalogue

# Azure's egress to AWS differs from pair to pair, and a relay helps some of them.
_REGIONS = (
    "azure:eastus", "azure:westus", "azure:westeurope", "aws:us-west-1", "aws:eu-central-1",
)  # fmt: skip


def test_a_frugal_campaign_keeps_its_promises(lab_of: Callable[..., Lab], tmp_path: Path) -> None:
    """The same as ``make lab-check`` with forty regions, on five."""
    profile = load_profile(built_in_folder() / "lab-skyplane-2022.toml")
    topology = topology_of(profile, load_catalogue(), backbone.rtt_ms, regions=_REGIONS)
    lab = lab_of(topology, "frugal")
    check = Check()
    check_campaign(
        check, lab, tmp_path, "--flow-time", "5s", connections=16, probe_s=4.0, parallel=2
    )
    assert not [finding for finding in check.findings if not finding.held]
    assert {"caps measured", "single flows measured"} <= {f.what for f in check.findings}
