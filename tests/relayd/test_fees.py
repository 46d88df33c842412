"""Fees besides egress, which a catalogue file states: in every price, and each on its own line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relayd as library
from planner.model.answer import Recommendation
from planner.model.errors import CatalogueError, InputError
from relayd.catalogue.loading import catalogue_of, content_of, load_catalogue
from relayd.sources.wan import Wan

PAGE = Path(__file__).parents[2] / "docs" / "catalogue.md"
EXAMPLE = Path(__file__).parents[2] / "configs" / "catalogue-interconnects.example.toml"
US, EU, GCP = "aws:us-east-1", "aws:eu-west-1", "gcp:us-east4"
NAT = f"""
[[fee]]
name = "NAT"
at = ["{EU}"]
usd_per_gb = 0.045
usd_per_h = 0.5
"""
INTERCONNECT = f"""
[[fee]]
name = "line"
from = "{US}"
to = "{GCP}"
usd_per_h = 6.5
gbps = 10
"""
ONE_VM: dict[str, Any] = {"vms": 1}
DIRECT: dict[str, Any] = {"relays": "none", "vms": 2}


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[str], Wan]:
    """Return a function that opens the baseline with a catalogue file of this content."""

    def with_file(content: str) -> Wan:
        file = tmp_path / "own.toml"
        file.write_text(content)
        return library.open(catalogues=[file])

    return with_file


def test_the_example_of_the_page_costs_what_it_says(opened: Callable[[str], Wan]) -> None:
    section = PAGE.read_text().partition("## Fees besides egress")[2]
    (block,) = re.findall(r"```toml\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    catalogue = opened(block).catalogue

    def usd_per_gb(src: str, dst: str) -> float:
        return catalogue.egress_price(src, dst).tiers[0].usd_per_gb

    assert usd_per_gb("aws:us-west-2", US) == pytest.approx(0.02 + 0.045 + 0.000625)
    assert usd_per_gb(US, "aws:us-west-2") == pytest.approx(0.02 + 0.045)
    assert usd_per_gb(EU, US) == pytest.approx(0.02 + 0.02 + 0.045 + 0.000625)
    assert usd_per_gb(GCP, US) == pytest.approx(0.045 + 0.000625)  # the gateway's, not egress
    assert usd_per_gb("aws:us-west-2", EU) == 0.02
    plan = opened(block).plan("aws:us-west-2", US, volume_gb=80, **DIRECT)
    (requests,) = (line for line in plan.fees if line.name == "PUT requests")
    assert (requests.unit, round(requests.quantity, 6)) == ("1,000 requests", 10.0)
    assert catalogue_of(content_of(catalogue), catalogue.digest) == catalogue


QUESTIONS: dict[str, Callable[[Wan], Recommendation]] = {
    "plan": lambda wan: wan.plan(US, EU, volume_gb=5000, **DIRECT),
    "shuffle": lambda wan: wan.shuffle({(US, EU): 5000, (EU, US): 1000}, **DIRECT),
    "broadcast": lambda wan: wan.broadcast(US, [EU, GCP], volume_gb=500, **DIRECT),
    "schedule": lambda wan: wan.schedule(
        [{"src": US, "dst": EU, "volume_gb": 500, "deadline": "24h"}], **DIRECT
    ),
    "reduce": lambda wan: wan.place_reduce(input_gb={US: 100, EU: 50}, **ONE_VM),
    "tasks": lambda wan: wan.place_tasks(
        tasks={"a": 4, "b": 4},
        machines=[{"id": "u", "region": US, "cpus": 4}, {"id": "e", "region": EU, "cpus": 4}],
        traffic_gb=[{"src": "a", "dst": "b", "volume_gb": 70}],
    ),
    "compare": lambda wan: wan.compare_candidates([EU], candidates=[US], volume_gb=100),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_charges_fees_and_lists_them(
    question: str, opened: Callable[[str], Wan]
) -> None:
    ask = QUESTIONS[question]
    without, plan = ask(opened("")), ask(opened(NAT))
    assert without.fees == ()
    assert {line.unit: line.usd_per_unit for line in plan.fees} == {"GB": 0.045, "hour": 0.5}
    for line in plan.fees:
        assert line.usd == pytest.approx(line.quantity * line.usd_per_unit)

    def cost(answer: Any) -> Any:
        return (answer.candidates[0] if question == "compare" else answer).cost_usd

    charged = {line.unit: line.usd for line in plan.fees}
    assert cost(plan).egress - cost(without).egress == pytest.approx(charged["GB"])
    assert cost(plan).vm - cost(without).vm == pytest.approx(charged["hour"])


def test_the_optimum_keeps_away_from_a_relay_with_fees(opened: Callable[[str], Wan]) -> None:
    """The relay is worth it by itself, and no more with a gateway of 0.1 USD per GB there."""
    asked: dict[str, Any] = {"volume_gb": 1000, "objective": "time", "vms": 1}
    ends = "azure:westeurope", "aws:ap-south-1"
    (relay, *_) = (
        path.regions[1] for path in opened("").plan(*ends, **asked).paths if len(path.regions) > 2
    )
    gateway = f'[[fee]]\nname = "g"\nat = "{relay}"\nusd_per_gb = 0.1\nusd_per_h = 2\n'
    plan = opened(gateway).plan(*ends, **(asked | {"objective": "cost", "relays": relay}))
    other = opened("").plan(*ends, **(asked | {"objective": "cost", "relays": relay}))
    assert (plan.verdict, plan.fees) == ("direct", ())
    assert plan.best_relay
    assert other.best_relay
    more_usd = plan.best_relay.cost_usd.total - other.best_relay.cost_usd.total
    hours = plan.best_relay.duration_s / 3600
    assert more_usd == pytest.approx(2 * 0.1 * 1000 + 2 * hours, rel=1e-3)


def test_the_matrix_of_fees_has_them(opened: Callable[[str], Wan]) -> None:
    with_fee, plain = opened(NAT).matrix("fee"), opened("").matrix("fee")
    more = np.nan_to_num(with_fee.values - plain.values)
    at = np.array(with_fee.regions) == EU
    either = np.logical_xor(at[:, None], at)
    assert more == pytest.approx(np.where(either, 0.045, 0.0))


def test_an_interconnect_costs_by_the_hour_and_carries_its_capacity(
    opened: Callable[[str], Wan],
) -> None:
    line = opened(INTERCONNECT)
    plan = line.plan(US, GCP, volume_gb=60_000, relays="none")
    assert plan.throughput_gbps == pytest.approx(10.0)
    assert plan.throughput_gbps_high == pytest.approx(10.0)
    assert plan.paths[0].addresses == ("private",)
    assert (plan.cost_usd.egress, plan.bottlenecks[0].constraint) == (0.0, "interconnect")
    (hours,) = plan.fees
    assert hours.unit == "hour"
    assert hours.usd == pytest.approx(6.5 * plan.duration_s / 3600, rel=1e-3)
    back = line.plan(GCP, US, volume_gb=60_000, relays="none")
    assert back.cost_usd.egress == 0.0
    public = line.plan(US, GCP, volume_gb=60_000, relays="none", addresses="public")
    plain = opened("").plan(US, GCP, volume_gb=60_000, relays="none", addresses="public")
    assert public.cost_usd == plain.cost_usd
    assert public.fees == ()


def test_many_transfers_share_the_capacity_of_an_interconnect(opened: Callable[[str], Wan]) -> None:
    demands = {(US, GCP): 9000.0}
    slow = opened(INTERCONNECT.replace("gbps = 10", "gbps = 2"))
    for vms in (1, 4, None):
        plan = slow.shuffle(demands, relays="none", vms=vms)
        moves_s = plan.duration_s - plan.vm_start_s
        assert moves_s == pytest.approx(8 * 9000 / 2, rel=0.001)
        assert (plan.cost_usd.egress, len(plan.fees)) == (0.0, 1)
        if vms is None:
            assert plan.vms == {US: 1, GCP: 1}  # more would carry no more
    tree = slow.broadcast(US, [GCP], volume_gb=9000, relays="none", vms=4)
    assert tree.throughput_gbps == pytest.approx(2.0, rel=0.001)


def test_replans_and_gains_of_relays_know_the_capacity_of_an_interconnect(
    opened: Callable[[str], Wan],
) -> None:
    slow, plain = opened(INTERCONNECT.replace("gbps = 10", "gbps = 0.5")), opened("")
    for plan in (
        slow.plan(US, GCP, volume_gb=9000, **DIRECT),
        slow.shuffle({(US, GCP): 9000.0}, **DIRECT),
    ):
        kept = slow.replan(plan, moved_gb=0.0, elapsed_s=0.0).keep
        assert kept.duration_s == pytest.approx(8 * 9000 / 0.5, rel=0.001)
        assert kept.duration_s_low == pytest.approx(kept.duration_s, rel=0.001)
    gains, before = slow.matrix("relay-gain"), plain.matrix("relay-gain")
    pair = gains.regions.index(US), gains.regions.index(GCP)
    direct = plain.plan(US, GCP, relays="none", addresses="public", **ONE_VM)
    relayed_gbps = before.values[pair] * direct.throughput_gbps
    assert gains.values[pair] == pytest.approx(relayed_gbps / 0.5, rel=0.01)
    other = pair[0], gains.regions.index(EU)
    assert gains.values[other] == pytest.approx(before.values[other])


def test_the_example_of_interconnects_is_a_catalogue() -> None:
    assert [fee.gbps for fee in load_catalogue([EXAMPLE]).fees] == [0.5] * 6


def test_a_transfer_from_zone_to_zone_costs_a_cent_at_each_end() -> None:
    zones = library.open(catalogues=[EXAMPLE.with_name("catalogue-zones.example.toml")])
    plan = zones.plan("us-east-1a", "us-east-1b", volume_gb=1000, **DIRECT)
    assert plan.cost_usd.egress == pytest.approx(20.0)
    assert [line.usd for line in plan.fees] == [pytest.approx(10.0)] * 2
    assert zones.resolve("us-east-1c").region_id == US
    unlisted = library.open().plan("us-east-1a", "us-east-1b", volume_gb=1000, **DIRECT)
    assert unlisted.cost_usd.egress == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("name", "region"),
    [
        ("USE1-EC2", US),
        ("USE1-", US),
        ("EUC1-DataTransfer-Out-Bytes", "aws:eu-central-1"),
        ("EU-DataTransfer-Out-Bytes", EU),
        ("APS3-NatGateway-Bytes", "aws:ap-south-1"),
        ("aws:USW2-DataTransfer-Regional-Bytes", "aws:us-west-2"),
        ("use1-az4", US),
        ("aps1-az2", "aws:ap-south-1"),  # bills call this one APS3
        ("apse1-az1", "aws:ap-southeast-1"),
        ("eastus-1", "azure:eastus"),
        ("eastus-2", "azure:eastus"),
        ("azure:westus-2", "azure:westus"),
        ("gcp:US", "gcp:us-central1"),
        ("gcp:EU", "gcp:europe-west1"),
        ("gcp:ASIA", "gcp:asia-southeast1"),
        ("EUR4", "gcp:europe-north1"),
        ("East US 2", "azure:eastus2"),
        ("West Europe", "azure:westeurope"),
        ("US East (N. Virginia)", US),
        ("EU (Ireland)", EU),
        ("Europe (Ireland)", EU),
        ("asia pacific (osaka)", "aws:ap-northeast-3"),
    ],
)
def test_names_of_bills_zones_and_multi_regions(name: str, region: str, wan: Wan) -> None:
    found = wan.resolve(name)
    assert found.region_id == region
    assert bool(found.note) == (name in {"gcp:US", "gcp:EU", "gcp:ASIA", "EUR4"})


@pytest.mark.parametrize("name", ["eastus-4", "eu-wst-1", "gcp:USE1-EC2", "xyz9-EC2", "-az1"])
def test_names_that_may_mean_something_else_are_refused(name: str, wan: Wan) -> None:
    with pytest.raises(InputError):
        wan.resolve(name)


AT = 'at = "aws:us-east-1"\n'


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ('at = "aws:us-esat-1"\nusd_per_gb = 1', "fee f, at names a region that is not in the"),
        (f"{AT}usd_per_gb = -1", "fee f, usd_per_gb must not be below 0"),
        (AT, "fee f, usd_per_gb or another price is missing"),
        (f"{AT}usd_per_tb = 1", "fee f, usd_per_tb is not a known field"),
        (f'{AT}unit = "TB"\nusd_per_gb = 1', "fee f, unit is not a known field"),
        (
            f"{AT}usd_per_gb = 1\nusd_per_1000_requests = 1\nrequest_mb = 8",
            "fee f, request_mb goes with usd_per_1000",
        ),
        (f'{AT}direction = "up"\nusd_per_gb = 1', "fee f, direction is not a known code"),
        (f"{AT}usd_per_h = 1\ngbps = 1", "fee f, gbps is of an interconnect"),
        (
            f"{AT}usd_per_1000_requests = 1",
            "fee f, request_mb goes with usd_per_1000_requests, and",
        ),
        ('from = "aws:*"\nusd_per_gb = 1', "fee f, at or `from` and `to` must be given"),
        ("usd_per_gb = 1", "fee f, at or `from` and `to` must be given"),
    ],
)
def test_wrong_fees_are_refused_by_file_entry_and_field(
    entry: str, told: str, tmp_path: Path
) -> None:
    file = tmp_path / "fees.toml"
    file.write_text(f'[[fee]]\nname = "f"\n{entry}\n')
    with pytest.raises(CatalogueError) as fault:
        load_catalogue([file])
    assert f"fees.toml, {told}" in str(fault.value)
    assert fault.value.remedy
