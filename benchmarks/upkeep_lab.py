"""What short first measurements find and move on a lab: ``python -m benchmarks.upkeep_lab``.

Brings up a lab on which Azure's egress differs from pair to pair, and measures the same links with
many connections twice: with whole tests, and as campaigns that keep a regret do. Needs root, and
takes about two minutes.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.campaign_check import true_network, unscaled
from benchmarks.lab_check import quantile
from benchmarks.table import show
from planner.model.baseline import backbone
from probes.campaign.specification import AS_ASKED, CampaignSpec
from probes.campaign.stages import CampaignReport
from probes.campaign.tasks import CampaignLimits
from probes.fleet.file import load_fleet
from probes.lab.controller import Lab
from probes.lab.profiles import load_profile, topology_of
from relayd.campaigns.running import CampaignRunner
from relayd.catalogue.files import built_in_folder
from relayd.catalogue.loading import load_catalogue
from relayd.store import open_store
from relayd.watch.settings import FIRST_S

CONNECTIONS = 64
AT_ONCE = 3


def measured(lab: Lab, db: Path, first_s: float) -> tuple[CampaignReport, list[float]]:
    """Measure all links; return the report and each link's error, of what it can carry."""
    catalogue, topology = load_catalogue(), lab.topology()
    spec = CampaignSpec(
        ("rtt", "aggregate"), thorough=True, connections=CONNECTIONS, aggregate_first_s=first_s
    )
    with open_store(db, mode="create") as store:
        runner = CampaignRunner(load_fleet(lab.fleet_file), catalogue, store)
        campaign = runner.begin(spec, AS_ASKED, None)
        report = asyncio.run(runner.run(campaign, CampaignLimits(at_once=AT_ONCE)))
        network = runner.measured.network()
    truth = true_network(topology)
    found = unscaled(network, [site.region for site in topology.sites], topology.scale)
    rates_gbps = [
        (link.aggregate_gbps.expected, truth.link(link.src, link.dst).rate_gbps(CONNECTIONS))
        for link in found
        if link.aggregate_gbps.source == "measured"
    ]
    errors = [abs(gbps / true_gbps - 1) for gbps, true_gbps in rates_gbps]
    return report, errors


def row(name: str, report: CampaignReport, errors: Sequence[float]) -> tuple[str, ...]:
    """Return a row of the table."""
    lasted = [o.busy_s for o in report.outcomes if o.probe.task.phase == "aggregate"]
    return (
        name,
        str(len(errors)),
        f"{100 * median(errors):.1f} %",
        f"{100 * quantile(errors, 0.9):.1f} %",
        f"{1e3 * report.sent_gb:.0f}",
        f"{report.usd:.4f}",
        f"{sum(lasted):.0f}",
    )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--regions", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(), help="where stores are put")
    options = parser.parse_args()
    profile = load_profile(built_in_folder() / "lab-skyplane-2022.toml")
    topology = topology_of(profile, load_catalogue(), backbone.rtt_ms, regions=options.regions)
    lab = Lab("upkeep")
    try:
        lab.up(topology, ends_with_caller=True)
        rows = [
            row(name, *measured(lab, options.folder / f"upkeep-{number}.db", first_s))
            for number, (name, first_s) in enumerate((("whole", 0.0), ("short first", FIRST_S)))
        ]
    finally:
        lab.down()
    header = ("tests", "links", "median error", "90th percentile", "MB", "USD", "seconds")
    show(f"{options.regions} regions of a lab", header, rows)


if __name__ == "__main__":
    main()
