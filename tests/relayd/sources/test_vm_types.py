"""VM types of the providers' lists: all there, what was measured first, and read when asked for."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from planner.model.baseline.modelled_links import baseline_links, baseline_site
from planner.model.network import Network
from planner.model.pricing import CataloguePrices
from planner.model.throughput import LAW_VM_EGRESS_GBPS
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from relayd.catalogue.files import built_in_folder
from relayd.catalogue.loading import load_catalogue
from scripts.catalogue_tables import TABLES
from tests.shared_data import shared

CATALOGUE = load_catalogue()
SRC, DST = "eu-central-1", "us-east-1"


def rows() -> list[dict[str, str]]:
    with shared("catalogue-2026/vm_types_2026.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def id_of(row: dict[str, str]) -> str:
    return f"{row['provider']}:{row['type'].removeprefix('Standard_')}"


def test_tables_are_what_the_script_makes_of_their_sources() -> None:
    folder = shared("catalogue-2026/vm_types_2026.csv").parent
    for name, table in TABLES.items():
        assert (built_in_folder() / name).read_text("utf-8") == table(folder)


def test_every_type_of_the_list_has_its_figures_or_what_was_measured() -> None:
    measured = 0
    for row in rows():
        vm = CATALOGUE.vm_types[id_of(row)]
        assert vm.price_usd_per_h == pytest.approx(float(row["price_usd_per_h"]), rel=1e-3)
        if "not measured" not in vm.source:
            measured += 1
            continue
        assert vm.egress_gbps == float(row["wan_egress_gbps"])
        assert vm.region_egress_gbps == float(row["cross_region_private_gbps"])
        assert vm.burst_gbps == (float(row["network_burst_gbps"] or 0) or None)
        assert row["as_of"][:7] in vm.source
    assert measured == 6  # of the 15 with figures from papers and surveys
    assert len(CATALOGUE.vm_types) == len(rows()) + 15 - measured


@pytest.mark.thorough
def test_every_type_can_be_planned_with() -> None:
    """A type that nobody measured carries what laws and its cap allow, and never more."""
    for name in CATALOGUE.vm_types:
        provider = name.partition(":")[0]
        src, dst = (
            next(r for r in CATALOGUE.regions if r.startswith(f"{provider}:")),
            "azure:westeurope" if provider != "azure" else "gcp:us-east4",
        )
        sites = {
            src: baseline_site(src, CATALOGUE, {src: name}),
            dst: baseline_site(dst, CATALOGUE),
        }
        links = baseline_links(list(sites.values()), CATALOGUE, np.ones((2, 2), bool))
        link = links[src][dst]
        cap = CATALOGUE.vm_types[name].egress_gbps
        assert link.aggregate_gbps.low <= link.aggregate_gbps.expected <= cap
        if cap > 2 * LAW_VM_EGRESS_GBPS[provider]:  # the smaller VMs of the law may be slower
            assert link.aggregate_gbps.low <= LAW_VM_EGRESS_GBPS[provider]
        network = Network(sites, {src: {dst: link}, dst: {}})
        prices = CataloguePrices(CATALOGUE, network)
        plan = recommend(TransferRequest(src=src, dst=dst, volume_gb=10), network, prices)
        assert 0 < plan.throughput_gbps <= 8 * cap * 1.001
