"""vCPU quotas: which VM types count, how many VMs they leave, and that no plan has more."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.broadcast.recommendation import recommend_broadcast
from planner.broadcast.request import BroadcastRequest
from planner.model.answer import Recommendation
from planner.model.baseline.changed_hosts import with_tuned_hosts, with_vm_types
from planner.model.baseline.modelled_links import baseline_network
from planner.model.catalogue import Catalogue
from planner.model.errors import DataError, InfeasibleError
from planner.model.network import Network
from planner.model.pricing import CataloguePrices
from planner.model.quotas.sites import with_quotas
from planner.model.quotas.vcpus import VcpuQuota
from planner.placement.reduce import recommend_reduce
from planner.placement.request import ReduceRequest
from planner.replanning.recommendation import replan
from planner.replanning.request import ReplanRequest
from planner.schedule.recommendation import recommend_schedule
from planner.schedule.request import ScheduleRequest
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from relayd.catalogue.loading import load_catalogue
from tests.properties import examples
from tests.shared_data import grid_catalogue

SRC, DST, OTHER, RELAY = "azure:eastus", "aws:sa-east-1", "aws:eu-west-1", "gcp:us-east4"
REGIONS = (SRC, DST, OTHER, RELAY)
STANDARD = "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"
CATALOGUE = grid_catalogue()
NETWORK = baseline_network(CATALOGUE).with_(restricted_to=REGIONS)
FAMILIES = {SRC: "standardDv5Family", DST: "L-1216C47A", OTHER: STANDARD, RELAY: "N2_CPUS"}
VM_VCPUS = 32
"""Of each provider's default type here."""


def limited(quotas: Mapping[str, tuple[int, int]]) -> tuple[Network, CataloguePrices, Catalogue]:
    """Return the network under quotas of vCPUs, and how many are in use, by region."""
    catalogue = replace(
        CATALOGUE,
        vcpu_quotas=tuple(
            VcpuQuota(region, FAMILIES[region], *figures) for region, figures in quotas.items()
        ),
    )
    network = with_quotas(NETWORK, catalogue)
    return network, CataloguePrices(catalogue, network, {}), catalogue


def allowed(figures: tuple[int, int]) -> int:
    """Return how many VMs a quota leaves."""
    vcpus, used = figures
    return max(0, (vcpus - used) // VM_VCPUS)


@pytest.mark.parametrize(
    ("family", "counted", "others"),
    [
        ("L-1216C47A", "aws:m5.8xlarge aws:c7gn.16xlarge aws:t3.nano aws:im4gn.large", "aws:p5.4x"),
        (f"{STANDARD} (L-1216C47A)", "aws:r6in.large aws:z1d.large", "aws:mac1.metal aws:hpc6a.48"),
        ("Running On-Demand G and VT instances", "aws:g5.xlarge aws:vt1.3xlarge", "aws:m5.large"),
        ("cores", "azure:D32_v5 azure:A2", "aws:c5.large gcp:n2-standard-2"),
        ("Standard DSv5 Family vCPUs", "azure:D32s_v5 azure:D4-2s_v5", "azure:D32_v5 azure:E2s_v5"),
        ("standardDDSv5Family", "azure:D32ds_v5", "azure:D32ads_v5 azure:D32ds_v6"),
        ("standardBsv2Family", "azure:B2ts_v2 azure:B32ls_v2", "azure:B2as_v2"),
        ("standardNCADSA100v4Family", "azure:NC24ads_A100_v4", "azure:NC24s_v3"),
        ("N2_CPUS", "gcp:n2-standard-32", "gcp:n2d-standard-2 gcp:n1-standard-1"),
        ("CPUS", "gcp:n1-standard-1 gcp:e2-small", "gcp:n2-standard-2 gcp:c3-standard-4"),
        ("PREEMPTIBLE_CPUS", "", "gcp:n1-standard-1"),
        ("All Standard (A, C, D) Spot Instance Requests", "", "aws:m5.large"),
    ],
)
def test_which_types_count_against_a_family(family: str, counted: str, others: str) -> None:
    quota = VcpuQuota("*", family, 100)
    assert [name for name in f"{counted} {others}".split() if quota.counts(name)] == counted.split()


def test_every_default_type_counts_against_a_named_family() -> None:
    today = {SRC: "StandardDasv7Family", DST: "L-1216C47A", OTHER: STANDARD, RELAY: "CPUS"}
    for catalogue, vcpus, families in ((CATALOGUE, 32, FAMILIES), (load_catalogue(), 4, today)):
        for region, family in families.items():
            vm = catalogue.vm_type(region)
            assert vm.vcpus == vcpus
            assert VcpuQuota(region, family, 1).counts(vm.id)


def test_types_that_are_named_count_alone() -> None:
    quota = VcpuQuota("*", "ours", 100, types=("m5.*", "azure:D*_v5", "Standard_E8s_v5"))
    names = ["aws:m5.large", "azure:D32s_v5", "azure:E8s_v5", "aws:m5a.large", "azure:E8s_v6"]
    assert list(map(quota.counts, names)) == [True, True, True, False, False]


def test_a_regions_own_quota_goes_before_patterns_and_all_families_bind() -> None:
    catalogue = replace(
        CATALOGUE,
        vcpu_quotas=(
            VcpuQuota(DST, "L-1216C47A", 96),
            VcpuQuota("aws:*", STANDARD, 320),
            VcpuQuota("aws:* & continent:EU", STANDARD, 160),
            VcpuQuota("azure:*", "cores", 100, 30),
            VcpuQuota("azure:*", "standardDv5Family", 640),
        ),
    )
    sites = with_quotas(NETWORK, catalogue).sites
    assert {region: sites[region].may_run(99) for region in REGIONS} == {
        DST: 3,
        OTHER: 5,
        SRC: 2,
        RELAY: 99,
    }
    small = with_vm_types(NETWORK, catalogue, {"azure": "azure:D2s_v5"})
    assert with_quotas(small, catalogue).sites[SRC].may_run(99) == 35


def test_a_fleet_goes_before_quotas() -> None:
    sites = {**NETWORK.sites, DST: replace(NETWORK.sites[DST], vms=5)}
    _, prices, catalogue = limited({DST: (64, 0)})
    tuned = with_tuned_hosts(NETWORK.with_(sites=sites), catalogue)  # no window is the limit
    network = with_quotas(tuned, catalogue)
    request = TransferRequest(OTHER, DST, volume_gb=5000, objective="time")
    assert recommend(request, network, prices).vms[DST] == 5


TIMED = {"id": "a", "src": SRC, "dst": DST, "volume_gb": 100, "deadline_s": 3600}
ASK: dict[str, tuple[Callable[..., Recommendation], Any]] = {
    "transfer": (recommend, TransferRequest(SRC, DST, volume_gb=2000, objective="time")),
    "transfer of value": (recommend, TransferRequest(OTHER, DST, volume_gb=2000)),
    "shuffle": (recommend_shuffle, ShuffleRequest({(SRC, DST): 100.0, (OTHER, DST): 50.0}, vms=4)),
    "broadcast": (recommend_broadcast, BroadcastRequest(SRC, (DST, OTHER), volume_gb=100, vms=4)),
    "schedule": (recommend_schedule, ScheduleRequest([TIMED], vms=4)),
    "reduce": (recommend_reduce, ReduceRequest({SRC: 100.0, OTHER: 50.0}, vms=4)),
}


def ask(
    question: str, network: Network, prices: CataloguePrices, vms: int | None
) -> Recommendation:
    answer, request = ASK[question]
    return answer(replace(request, vms=vms or request.vms), network, prices)


FIGURES = st.tuples(st.integers(0, 320), st.sampled_from([0, 0, 16, 100]))


@settings(deadline=None, max_examples=examples(20))
@given(
    st.sampled_from(sorted(ASK)),
    st.dictionaries(st.sampled_from(REGIONS), FIGURES, min_size=1),
    st.sampled_from([None, 1, 6]),
)
def test_no_plan_has_more_vms_than_quotas_leave(
    question: str, quotas: dict[str, tuple[int, int]], vms: int | None
) -> None:
    network, prices, _ = limited(quotas)
    try:
        plan: object = ask(question, network, prices, vms)
    except InfeasibleError as fault:
        region = str(fault.limit).partition(" ")[0]
        assert allowed(quotas[region]) == 0
        return
    counts: Mapping[str, int] = plan.vms  # type: ignore[attr-defined]
    for region, figures in quotas.items():
        assert counts.get(region, 0) <= allowed(figures)


def raised(plan: Recommendation, quotas: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Return quotas as a plan's warnings ask for them."""
    found = dict(quotas)
    for warning in plan.warnings:
        if asked := re.search(r"(.*) may (?:each )?run .* raise it to (\d+) for", warning):
            for region in re.findall(r"\w+:[\w-]+", asked[1]):
                found[region] = (int(asked[2]), quotas[region][1])
    return found


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(20))
@given(
    st.sampled_from(["transfer", "transfer of value", "shuffle", "broadcast"]),
    st.dictionaries(st.sampled_from(REGIONS), st.tuples(st.integers(32, 256), st.just(0))),
)
def test_quotas_raised_as_asked_are_asked_for_no_more(
    question: str, quotas: dict[str, tuple[int, int]]
) -> None:
    # Once a quota no longer binds, that of another region may; of one transfer, all are named.
    rounds = 1 if question.startswith("transfer") else len(REGIONS)
    for _ in range(rounds):
        plan = ask(question, *limited(quotas)[:2], None)
        quotas = raised(plan, quotas)
    plan = ask(question, *limited(quotas)[:2], None)
    assert raised(plan, quotas) == quotas
    assert not [warning for warning in plan.warnings if "may run" in warning]


def test_what_raising_a_quota_gains_is_what_the_plan_then_takes() -> None:
    request = TransferRequest(OTHER, DST, volume_gb=5000, objective="time")
    plan = recommend(request, *limited({OTHER: (128, 32)})[:2])
    assert plan.vms == {OTHER: 3, DST: 2}
    limit, gain = plan.warnings[:2]
    assert limit.startswith(
        f"{OTHER} may run 3 VMs of m5.8xlarge with 32 vCPUs: quota {STANDARD} is 128 vCPUs, 32 of "
        "them in use. Ask AWS to raise it to "
    )
    again = recommend(request, *limited(raised(plan, {OTHER: (128, 32)}))[:2])
    assert gain == (
        f"With this quota raised it ends {plan.duration_s / again.duration_s:.3g}x sooner."
    )
    assert plan.plan_id != again.plan_id


def test_numbers_stated_for_a_region_are_planned_and_warned_of() -> None:
    network, prices, _ = limited({DST: (64, 0), RELAY: (0, 0)})
    request = TransferRequest(OTHER, DST, volume_gb=5000, objective="time", vms_in={DST: 4})
    plan = recommend(request, network, prices)
    assert plan.vms[DST] == 4
    assert plan.warnings[0].startswith(f"Planned with more VMs, as asked: {DST} may run 2 VMs of ")
    assert "raise it to 128 for 4 VMs." in plan.warnings[0]


@pytest.mark.parametrize("question", ["shuffle", "broadcast", "reduce"])
def test_one_more_vm_than_a_quota_allows_names_it(question: str) -> None:
    network, prices, _ = limited({SRC: (32, 0), OTHER: (32, 0), DST: (32, 0)})
    plan = ask(question, network, prices, 1)
    said = json.dumps(plan.model_dump("json"))
    assert re.search(r"(eastus|west-1|east-1) may (each )?run 1 VM of .* to 64 for 2 VMs\.", said)
    free = ask(question, NETWORK, prices, 1)
    assert "may run" not in json.dumps(free.model_dump("json"))


def test_relays_that_quotas_alone_rule_out_are_named() -> None:
    links = {src: {**row} for src, row in NETWORK.usual.items()}
    del links[OTHER][DST]
    network, prices, catalogue = limited(dict.fromkeys((SRC, RELAY), (0, 0)))
    network = with_quotas(NETWORK.with_(links=links), catalogue)
    with pytest.raises(InfeasibleError, match="nothing is known of the direct path") as caught:
        recommend(TransferRequest(OTHER, DST), network, prices)
    assert re.search(r"Ask (Azure|Google Cloud) to raise it to \d+", caught.value.remedy)
    del links[SRC][DST], links[RELAY][DST]
    network = with_quotas(NETWORK.with_(links=links), catalogue)
    with pytest.raises(DataError):
        recommend(TransferRequest(OTHER, DST), network, prices)


@settings(deadline=None, max_examples=examples(10))
@given(st.dictionaries(st.sampled_from(REGIONS), st.tuples(st.integers(32, 256), st.just(0))))
def test_advice_keeps_within_quotas_and_what_it_promises(
    quotas: dict[str, tuple[int, int]],
) -> None:
    network, prices, catalogue = limited(quotas)
    request = TransferRequest(SRC, DST, volume_gb=2000)
    for advice in recommend(request, network, prices).advice:
        if advice.change is None or advice.outcome is None:
            continue
        for region, count in advice.change.get("vms_in", {}).items():
            assert network.sites[region].may_run(count) == count
        changed = network
        if chosen := advice.change.get("vm_types"):
            changed = with_quotas(with_vm_types(NETWORK, catalogue, chosen), catalogue)
        again = recommend(
            replace(request, **advice.change), changed, CataloguePrices(catalogue, changed, {})
        )
        assert again.duration_s == pytest.approx(advice.outcome.duration_s)


def test_an_end_without_a_vm_is_refused_and_says_what_would_do() -> None:
    network, prices, _ = limited({DST: (100, 90), RELAY: (0, 0)})
    for question in ASK.keys() - {"reduce"}:
        with pytest.raises(InfeasibleError, match=f"{DST} may run no VM of m5.8xlarge") as caught:
            ask(question, network, prices, None)
        assert caught.value.remedy.startswith("Ask AWS to raise it to 122 for 1 VM, or name")


def test_limits_that_only_quotas_keep_from_being_met_name_them() -> None:
    network, prices, _ = limited({DST: (32, 0)})
    request = TransferRequest(OTHER, DST, volume_gb=1000, deadline_s=500)
    with pytest.raises(InfeasibleError) as caught:
        recommend(request, network, prices)
    assert "raise `vms`" not in caught.value.remedy
    asked = re.search(
        rf"{DST} may run 1 VM of m5.8xlarge with 32 vCPUs: quota .* is 32 "
        r"vCPUs. Ask AWS to raise it to (\d+) for \d VMs\.",
        caught.value.remedy,
    )
    assert asked, caught.value.remedy
    higher = limited({DST: (int(asked[1]), 0)})[:2]
    assert recommend(request, *higher).duration_s <= 500


def test_a_plan_in_progress_keeps_the_vms_that_it_has() -> None:
    request = TransferRequest(OTHER, DST, volume_gb=5000, objective="time", vms=4)
    plan = recommend(request, NETWORK, CataloguePrices(CATALOGUE, NETWORK, {}))
    network, prices, _ = limited({DST: (128, 128), OTHER: (128, 128)})
    answer = replan(ReplanRequest(plan, moved_gb=290, elapsed_s=120), network, prices)
    assert answer.verdict == "keep"
    assert not answer.warnings
