"""The default VM types are what their rule makes of the packaged catalogue, and advice agrees."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

import relayd
from planner.model.baseline.modelled_links import baseline_regions
from planner.model.network import Snapshot
from probes.estimation import Estimator
from probes.samples import Samples
from relayd.catalogue.loading import load_catalogue
from scripts.catalogue_tables import default_vm_types, with_suggested
from tests.relayd.building import ping, rate

CATALOGUE = load_catalogue((), ())


def test_the_catalogue_has_the_types_that_the_rule_chooses() -> None:
    """One of today for each provider, at a third or less of the price of the grid's."""
    assert CATALOGUE.default_vm_types == default_vm_types(CATALOGUE)
    for grid, least_gbps in (
        ("aws:m5.8xlarge", 5),
        ("azure:D32_v5", 16),
        ("gcp:n2-standard-32", 7),
    ):
        old = CATALOGUE.vm_types[grid]
        new = CATALOGUE.vm_types[CATALOGUE.default_vm_types[old.provider]]
        assert new.egress_gbps >= old.egress_gbps == least_gbps
        assert new.vcpus >= 4
        assert new.price_usd_per_h < old.price_usd_per_h / 3


def test_a_cheaper_type_goes_before_if_it_is_suggested() -> None:
    chosen = CATALOGUE.vm_types["aws:c6in.xlarge"]
    cheap = replace(chosen, id="aws:c7i.xlarge", price_usd_per_h=chosen.price_usd_per_h / 2)

    def default(**changes: object) -> str:
        vm = replace(cheap, **changes)  # type: ignore[arg-type]
        types = {**CATALOGUE.vm_types, vm.id: vm}
        return default_vm_types(replace(CATALOGUE, vm_types=types))["aws"]

    assert default() == cheap.id
    rejected: tuple[dict[str, object], ...] = (
        {"suggested": False},
        {"burstable": True},
        {"egress_gbps": 4.9},
    )
    for changes in rejected:
        assert default(**changes) == chosen.id


def test_arm_old_series_few_vcpus_and_copied_figures_are_not_suggested() -> None:
    row = {"id": "aws:c8i.xlarge", "vcpus": 4, "network_from": "documented"}
    changes: tuple[dict[str, object], ...] = (
        {},
        {"id": "aws:c6in.xlarge"},
        {"id": "aws:c8gn.xlarge"},
        {"id": "aws:c5n.xlarge"},
        {"vcpus": 2},
        {"network_from": "as c7i"},
    )
    found = with_suggested([{**row, **change} for change in changes])
    assert [one["suggested"] for one in found] == [1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("volume_gb", [100.0, 1000.0, 100_000.0])
def test_no_answer_on_default_types_advises_one_as_fast_and_cheaper(volume_gb: float) -> None:
    """A default is what relayd would advise: over sixty pairs of regions drawn at random."""
    wan, draw = relayd.open(), Random(60)
    regions = baseline_regions(wan.catalogue)
    advised = 0
    for src, dst in (draw.sample(regions, 2) for _ in range(60)):
        plan = wan.plan(src, dst, volume_gb=volume_gb)
        assert plan.vm_types[src] == wan.catalogue.default_vm_types[src.partition(":")[0]]
        for advice in plan.advice:
            if "vm_types" in (advice.change or {}) and (outcome := advice.outcome):
                advised += 1
                faster = outcome.duration_s < plan.duration_s / 1.05
                assert faster or advice.cost_usd >= 0, (src, dst, advice.action)
    assert advised or volume_gb < 100_000  # other types are advised where they are faster


SRC, DST = "azure:japaneast", "aws:ap-northeast-1"


def test_measurements_keep_the_vm_types_that_they_name() -> None:
    """Samples that name none count up to what the default type lastingly receives."""
    test = rate(SRC, DST, 9500.0, 1.7e9)
    tests = [ping(SRC, DST, 4.0, 1.7e9), *(test._replace(value=9500.0 + n) for n in range(3))]
    for types, gbps in ((("D32_v5", "m5.8xlarge"), 9.5), (("", ""), 6.25)):
        named = [one._replace(src_vm=types[0], dst_vm=types[1]) for one in tests]
        network = Estimator(Samples.of(named), CATALOGUE).network(Snapshot("t", "", ""))
        assert network.link(SRC, DST).aggregate_gbps.expected == pytest.approx(gbps, rel=0.01)
        site = network.sites[DST]
        assert site.vm_type == f"aws:{types[1] or 'c6in.xlarge'}"
        assert site.ingress_gbps.expected == pytest.approx(
            CATALOGUE.vm_types[site.vm_type].ingress_gbps
        )
        elsewhere = network.sites["aws:eu-west-1"]  # of which nothing was measured
        assert elsewhere.vm_type == "aws:c6in.xlarge"


def test_other_regions_have_the_type_that_most_measured_ones_name() -> None:
    """One region says nothing of others; several are what their owner runs."""
    measured = ("aws:us-east-1", "aws:ap-northeast-1", "aws:sa-east-1")
    for types, elsewhere in (
        (("m5.8xlarge", "m5.8xlarge", "t3.micro"), "m5.8xlarge"),
        (("m5.8xlarge", "", ""), "c6in.xlarge"),
        (("m5.8xlarge", "t3.micro", "c5n.large"), "c6in.xlarge"),
    ):
        tests = [
            rate(SRC, dst, 4000.0 + n, 1.7e9)._replace(src_vm="D32_v5", dst_vm=vm_type)
            for dst, vm_type in zip(measured, types, strict=True)
            for n in range(3)
        ]
        sites = Estimator(Samples.of(tests), CATALOGUE).network(Snapshot("t", "", "")).sites
        assert sites["aws:eu-west-1"].vm_type == f"aws:{elsewhere}"
        assert sites["azure:westus"].vm_type == "azure:D4as_v7"
