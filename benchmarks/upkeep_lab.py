"""Short first measurements on a lab, and their traffic: ``python -m benchmarks.upkeep_lab``.

Brings up a lab on which Azure's egress differs from pair to pair, and measures the same links with
many connections twice: with whole tests, and as campaigns that keep a regret do. Needs root, and
takes about two minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.campaign_check import CONNECTIONS, aggregates_of, errors_pct, true_network, unscaled
from benchmarks.labs import lab_of, topology_like
from benchmarks.table import quantile, show
from probes.campaign.specification import AS_ASKED, CampaignSpec
from probes.campaign.tasks import CampaignLimits
from probes.fleet.file import load_fleet
from probes.lab.controller import Lab
from relayd.campaigns.running import CampaignRunner
from relayd.catalogue.loading import load_catalogue
from relayd.store import open_store
from relayd.watch.settings import FIRST_S

AT_ONCE = 3


def row(name: str, lab: Lab, db: Path, first_s: float) -> tuple[str, ...]:
    """Measure all links, and return a row of the table."""
    topology = lab.topology()
    spec = CampaignSpec(
        ("rtt", "aggregate"), thorough=True, connections=CONNECTIONS, aggregate_first_s=first_s
    )
    with open_store(db, mode="create") as store:
        runner = CampaignRunner(load_fleet(lab.fleet_file), load_catalogue(), store)
        campaign = runner.begin(spec, AS_ASKED, None)
        report = asyncio.run(runner.run(campaign, CampaignLimits(at_once=AT_ONCE)))
        network = runner.measured.network()
    truth = true_network(topology)
    found = unscaled(network, [site.region for site in topology.sites], topology.scale)
    links = [(link, truth.link(link.src, link.dst)) for link in found]
    errors = errors_pct(aggregates_of(links))
    lasted = [o.busy_s for o in report.outcomes if o.probe.task.phase == "aggregate"]
    return (
        name,
        str(len(errors)),
        f"{median(errors):.1f} %",
        f"{quantile(errors, 0.9):.1f} %",
        f"{1e3 * report.sent_gb:.0f}",
        f"{report.usd:.4f}",
        f"{sum(lasted):.0f}",
    )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--regions", type=int, default=3)
    regions = parser.parse_args().regions
    with (
        tempfile.TemporaryDirectory() as folder,
        lab_of(topology_like("skyplane-2022", regions)) as lab,
    ):
        rows = [
            row(name, lab, Path(folder) / f"{name}.db", first_s)
            for name, first_s in (("whole", 0.0), ("short first", FIRST_S))
        ]
    header = ("tests", "links", "median error", "90th percentile", "MB", "USD", "seconds")
    show(f"{regions} regions of a lab", header, rows)


if __name__ == "__main__":
    main()
