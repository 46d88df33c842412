"""VM types of the providers' lists: all there, what was measured first, and read when asked for."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import relayd
from planner.model.baseline.modelled_links import baseline_links, baseline_site
from planner.model.catalogue import VmType
from planner.model.estimate import Estimate, Origin
from planner.model.network import Network
from planner.model.pricing import CataloguePrices
from planner.model.throughput import LAW_VM_EGRESS_GBPS
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from relayd.catalogue.files import built_in_folder
from relayd.catalogue.loading import load_catalogue
from relayd.sources.wan import Wan
from scripts.catalogue_tables import TABLES
from tests.shared_data import shared, shared_rows

CATALOGUE = load_catalogue()
SRC, DST = "eu-central-1", "us-east-1"


def id_of(row: dict[str, str]) -> str:
    return f"{row['provider']}:{row['type'].removeprefix('Standard_')}"


def test_tables_are_what_the_script_makes_of_their_sources() -> None:
    folder = shared("catalogue-2026/vm_types_2026.csv").parent
    for name, table in TABLES.items():
        assert (built_in_folder() / name).read_text("utf-8") == table(folder)


def test_every_type_of_the_list_has_its_figures_or_what_was_measured() -> None:
    measured, rows = 0, shared_rows("catalogue-2026/vm_types_2026.csv")
    for row in rows:
        vm = CATALOGUE.vm_types[id_of(row)]
        assert vm.price_usd_per_h == pytest.approx(float(row["price_usd_per_h"]), rel=1e-3)
        if "not measured" not in vm.source:
            measured += 1
            continue
        assert vm.egress_gbps == float(row["wan_egress_gbps"])
        assert vm.region_egress_gbps == float(row["cross_region_private_gbps"])
        assert vm.burst_gbps == (float(row["network_burst_gbps"] or 0) or None)
        assert row["as_of"][:7] in vm.source
    assert measured == 7  # of the 17 with figures of their own, most from papers and surveys
    assert len(CATALOGUE.vm_types) == len(rows) + 17 - measured + 38  # with CPU credits


BURSTABLE = re.compile(r"aws:t\d|azure:B|gcp:e2-(micro|small|medium)$")
SIZES = ["nano", "micro", "small", "medium", "large"]


def family_and_size(vm: VmType) -> tuple[str, float]:
    name = vm.id.partition(":")[2]
    if vm.provider == "aws":
        family, _, size = name.partition(".")
        return family, SIZES.index(size) / len(SIZES) if size in SIZES else vm.vcpus
    if vm.provider == "gcp":
        family, _, size = name.rpartition("-")
        return family, SIZES.index(size) if size in SIZES else vm.vcpus
    return re.sub(r"\d+(-\d+)?", "", name, count=1), vm.vcpus


def test_no_larger_sibling_lasts_at_a_lower_rate() -> None:
    families: dict[str, list[tuple[float, VmType]]] = defaultdict(list)
    for vm in CATALOGUE.vm_types.values():
        family, size = family_and_size(vm)
        families[f"{vm.provider}:{family}"].append((size, vm))
    for siblings in families.values():
        siblings.sort(key=lambda sibling: sibling[0])
        for (_, smaller), (_, larger) in pairwise(siblings):
            # 4 %: what lies between a documented cap and one that was measured.
            assert larger.egress_gbps >= 0.96 * smaller.egress_gbps, (smaller, larger)
            if larger.provider == "aws":  # credits count both ways
                assert larger.ingress_gbps >= 0.96 * smaller.ingress_gbps, (smaller, larger)
    assert len(families) > 100


def test_what_bursts_says_what_lasts() -> None:
    for vm in CATALOGUE.vm_types.values():
        assert vm.burstable == bool(BURSTABLE.match(vm.id)), vm
        if vm.wan_burst_gbps:
            assert vm.egress_gbps < vm.wan_burst_gbps <= 5.0
            assert re.search("sustained|lasting|baseline", vm.source), vm
            assert re.search(r"20\d\d-\d\d|\(20\d\d\)", vm.source), vm
    lasting = {"t3.nano": 0.032, "t3a.micro": 0.064, "t4g.small": 0.128, "t3.large": 0.512}
    for name, gbps in lasting.items():
        assert CATALOGUE.vm_types[f"aws:{name}"].egress_gbps == gbps
    assert CATALOGUE.vm_types["azure:B2s_v2"].egress_gbps == 6.25


def test_volumes_that_outlast_bursts_go_at_what_lasts() -> None:
    wan = relayd.open()
    for name in ("t3.nano", "t3.micro", "t3.medium", "t4g.xlarge"):
        ends, small = ("aws:us-east-1", "aws:eu-west-1"), {"aws": name}
        plan = wan.plan(*ends, volume_gb=40_000, vms=1, relays="none", vm_types=small)
        vm = CATALOGUE.vm_types[f"aws:{name}"]
        assert plan.throughput_gbps == pytest.approx(vm.egress_gbps)
        said = f"have {vm.egress_gbps:g} Gbit/s for long, and up to 5 while network credits last"
        assert sum(said in warning for warning in plan.warnings) == 2  # both ends


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


def test_what_many_transfers_send_outlasts_bursts_too() -> None:
    """A cap that was tested for seconds counts for 5 minutes of a shuffle or a broadcast."""
    src, dst = "aws:us-east-1", "aws:eu-west-1"
    network = relayd.open().network  # links of larger VMs
    measured = Estimate(5.0, 4.7, 5.3, Origin("measured", "median-of-samples", 3))
    caps: dict[str, Any] = {
        "vm_type": "aws:t3.large",
        "egress_gbps": measured,
        "ingress_gbps": measured,
    }
    sites = {
        name: replace(site, **caps) if name.startswith("aws:") else site
        for name, site in network.sites.items()
    }
    wan = Wan(CATALOGUE, network.with_(sites=sites))
    lasting_s = 8 * (1e4 - 187.5) / 0.512
    assert wan.shuffle({(src, dst): 1e4}, vms=1).duration_s > lasting_s
    assert wan.broadcast(src, [dst], volume_gb=1e4, vms=1).duration_s > lasting_s
