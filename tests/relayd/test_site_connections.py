"""Sites that allow so many connections in all: every question keeps to it, and says when it binds.

What plans should reach is worked out here from links' estimates and plain arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relayd as library
from planner.model.errors import CatalogueError
from relayd import Wan

FTP, US, EU = "onprem:ftp", "aws:us-west-2", "aws:eu-west-1"
SITE = """
[[region]]
id = "onprem:ftp"
continent = "EU"
country = "DE"
latitude_deg = 52.5
longitude_deg = 13.4
{limit}

[[vm_type]]
id = "onprem:node"
vcpus = 8
egress_gbps = 10.0
ingress_gbps = 10.0
flow_gbps = 5.0
price_usd_per_h = 0.1

[default_vm_types]
onprem = "onprem:node"

[[egress]]
name = "uplink"
from = ["onprem:*"]
to = ["*"]
usd_per_gb = 0.0
"""
BOTH = 'connections = "10 in, 128 out"'


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[str], Wan]:
    """Return a function that opens the baseline with a site that has this limit."""

    def with_limit(limit: str) -> Wan:
        file = tmp_path / "site.toml"
        file.write_text(SITE.format(limit=limit))
        return library.open(catalogues=[file])

    return with_limit


def flow_gbps(wan: Wan, *path: str) -> float:
    """Return what one connection carries on a path."""
    links = (wan.network.link(*pair) for pair in pairwise(path))
    return min(link.per_flow_mbps.expected for link in links) / 1000


@pytest.mark.parametrize(
    ("limit", "found"),
    [
        (BOTH, (10, 128)),
        ('connections = "128 out"', (None, 128)),
        ("connections = { in = 10, out = 128 }", (10, 128)),
        ("connections.in = 10", (10, None)),
        ("", (None, None)),
    ],
)
def test_a_file_states_connections_in_and_out(
    opened: Callable[[str], Wan], limit: str, found: tuple[int | None, int | None]
) -> None:
    region = opened(limit).catalogue.regions[FTP]
    assert (region.connections_in, region.connections_out) == found


@pytest.mark.parametrize(
    ("stated", "named"),
    [
        ('"10"', "connections must say how many go in and out"),
        ("10", "connections must say how many go in and out"),
        ('"ten in"', "connections must say how many go in and out"),
        ('"10 in, 12 in"', "connections must say how many go in and out"),
        ('"0 out"', "connections, out"),
        ("{ out = 1.5 }", "connections, out"),
        ("{ up = 5 }", "connections, up"),
    ],
)
def test_errors_name_the_field_and_the_value(
    opened: Callable[[str], Wan], stated: str, named: str
) -> None:
    with pytest.raises(CatalogueError) as raised:
        opened(f"connections = {stated}")
    text = str(raised.value)
    assert f"region {FTP}, {named}" in text
    assert raised.value.remedy or "must" in text


@pytest.mark.parametrize("vms", [1, 2, 8])
@pytest.mark.parametrize("ends", [(FTP, US), (US, FTP)])
def test_a_direct_transfer_carries_what_the_connections_of_its_site_do(
    opened: Callable[[str], Wan], ends: tuple[str, str], vms: int
) -> None:
    asked: dict[str, Any] = {"volume_gb": 2000, "objective": "time", "relays": "none", "vms": vms}
    free, wan = opened("").plan(*ends, **asked), opened(BOTH)
    plan, most = wan.plan(*ends, **asked), 128 if ends[0] == FTP else 10
    in_all_gbps = most * flow_gbps(wan, *ends)
    assert plan.throughput_gbps == pytest.approx(min(free.throughput_gbps, in_all_gbps), rel=1e-6)
    assert plan.throughput_gbps_high <= free.throughput_gbps_high
    assert plan.paths[0].connections == min(most, 64 * plan.vms[ends[0]])
    if free.throughput_gbps > in_all_gbps:
        way = "out" if ends[0] == FTP else "in"
        assert plan.bottlenecks[0].constraint == f"site connections {way}"
        assert plan.bottlenecks[0].region == FTP
        assert f"site connections {way} at {FTP}" in str(plan)
        assert f"for each of {most}" in str(plan)
        assert not any("connections" in (advice.change or {}) for advice in plan.advice)


@pytest.mark.parametrize("limit", ["7 in, 30 out", "40 in, 100 out", "500 in, 500 out"])
@pytest.mark.parametrize("ends", [(FTP, US), ("azure:brazilsouth", FTP)])
def test_no_plan_opens_more_than_its_site_allows(
    opened: Callable[[str], Wan], ends: tuple[str, str], limit: str
) -> None:
    wan = opened(f'connections = "{limit}"')
    most = int(limit.split()[2 if ends[0] == FTP else 0])
    for objective in ("time", "value"):
        plan = wan.plan(*ends, volume_gb=5000, objective=objective, margin=0.0, vms=4)
        assert sum(path.connections for path in plan.paths) <= most
        for path in plan.paths:
            carried = path.connections * flow_gbps(wan, *path.regions)
            assert path.throughput_gbps <= carried * (1 + 1e-6)


@pytest.mark.parametrize("ends", [(FTP, "aws:us-east-1"), ("aws:us-east-1", FTP)])
def test_a_division_over_paths_is_at_least_as_fast_as_one_path(
    opened: Callable[[str], Wan], ends: tuple[str, str]
) -> None:
    for limit in (3, 10, 48, 49, 128, 300):
        wan = opened(f'connections = "{limit} in, {limit} out"')
        fields: dict[str, Any] = {"objective": "time", "volume_gb": 9000, "vms": 4}
        plan, one = wan.plan(*ends, **fields), wan.plan(*ends, **fields, single_path=True)
        assert sum(path.connections for path in plan.paths) <= limit
        assert plan.throughput_gbps >= one.throughput_gbps * (1 - 1e-6)
        for path in plan.paths:
            most_gbps = path.connections * flow_gbps(wan, *path.regions)
            assert path.throughput_gbps <= most_gbps * (1 + 1e-6)


def test_a_relay_opens_no_more_than_its_site_allows(opened: Callable[[str], Wan]) -> None:
    wan = opened('connections = "20 in, 16 out"')
    asked: dict[str, Any] = {"volume_gb": 2000, "objective": "cost", "vms": 4}
    plan = wan.plan("azure:brazilsouth", "aws:ap-south-1", relays=FTP, **asked)
    option = plan.best_relay
    if plan.verdict == "relay":
        assert plan.paths[0].connections <= 16
    assert option is not None
    most_gbps = 16 * flow_gbps(wan, "azure:brazilsouth", FTP, "aws:ap-south-1")
    assert option.throughput_gbps <= most_gbps * (1 + 1e-6)


def test_a_shuffle_divides_the_connections_of_its_site_best(opened: Callable[[str], Wan]) -> None:
    """Two senders into one site that allows ten: all divisions of ten are tried here."""
    wan, volumes = opened(BOTH), {(US, FTP): 100.0, ("aws:us-east-1", FTP): 300.0}
    plan = wan.shuffle(volumes, relays="none", objective="time")
    first, second = (8 * gb / flow_gbps(wan, *pair) for pair, gb in volumes.items())
    best_s = min(max(first / n, second / (10 - n)) for n in range(1, 10))
    gbps = {(pair.src, pair.dst): pair.throughput_gbps for pair in plan.pairs}
    moves_s = max(8 * gb / gbps[pair] for pair, gb in volumes.items())
    assert moves_s == pytest.approx(best_s, rel=1e-3)
    assert sum(path.connections for pair in plan.pairs for path in pair.paths) <= 10
    assert plan.vms[FTP] == 1  # more would carry no more
    assert not any(more.region == FTP for more in plan.one_more_vm)
    assert f"{FTP} allows 10 connections in, and this needs 10" in plan.warnings
    assert plan.bottlenecks[0].constraint.endswith("site connections in")


def test_what_many_links_share_at_a_site_is_counted_once(opened: Callable[[str], Wan]) -> None:
    wan, ends = opened('connections = "9 out"'), (US, EU, "gcp:us-central1")
    limit_s = sum(8 * 100 / flow_gbps(wan, FTP, end) for end in ends) / 9
    for relays in ("none", "any"):
        plan = wan.shuffle({(FTP, end): 100.0 for end in ends}, relays=relays, objective="time")
        out = [p for pair in plan.pairs for p in pair.paths if FTP in p.regions[:-1]]
        assert sum(path.connections for path in out) <= 9
        if relays == "none":
            assert plan.duration_s >= limit_s * (1 - 1e-9)
            assert plan.duration_s - plan.vm_start_s <= limit_s * 1.5  # in whole connections
    tree = wan.broadcast(FTP, list(ends), volume_gb=100)
    fastest_gbps = 9 * max(flow_gbps(wan, FTP, end) for end in ends)
    assert tree.throughput_gbps <= fastest_gbps * (1 + 1e-6)


def test_schedules_and_arrays_of_decisions_keep_to_it(opened: Callable[[str], Wan]) -> None:
    wan = opened(BOTH)
    item = {"name": "in", "src": US, "dst": FTP, "volume_gb": 100, "deadline": "6h"}
    plan = wan.schedule([item, {**item, "name": "too", "src": "aws:us-east-1"}], relays="none")
    for transfer in plan.transfers:
        (pair,) = {path.regions for period in transfer.periods for path in period.paths}
        for period in transfer.periods:
            assert period.throughput_gbps <= 10 * flow_gbps(wan, *pair) * (1 + 1e-6)
    many = wan.decide([FTP, US], [US, FTP], volume_gb=2000, relays="none")
    one_by_one = [
        wan.plan(*ends, volume_gb=2000, relays="none").throughput_gbps
        for ends in ((FTP, US), (US, FTP))
    ]
    assert np.array(many["throughput_gbps"]) == pytest.approx(one_by_one, rel=1e-6)
    gains = wan.matrix("relay-gain")
    at = gains.regions.index(US), gains.regions.index(FTP)
    assert gains.values[at] > opened("").matrix("relay-gain").values[at]  # fewer, slower flows


def test_a_broadcast_keeps_to_it_and_has_a_vm_wherever_it_ends(tmp_path: Path) -> None:
    file, found = tmp_path / "bare.toml", {}
    for limit in ("", BOTH):
        file.write_text(SITE.format(limit=limit).split("[[vm_type]]")[0])  # nothing has a cap there
        wan = library.open(catalogues=[file])
        plan = wan.broadcast("aws:us-east-1", [FTP, EU], volume_gb=1000)
        ends = {end for tree in plan.trees for link in tree.legs for end in (link.src, link.dst)}
        assert plan.vms.keys() == ends >= {FTP, EU}
        found[limit] = [link for tree in plan.trees for link in tree.legs if link.dst == FTP]
    assert sum(link.connections for link in found[BOTH]) <= 10
    for link in found[BOTH]:
        most_gbps = link.connections * flow_gbps(wan, link.src, FTP)
        assert link.throughput_gbps <= most_gbps * (1 + 1e-6)
    assert sum(link.connections for link in found[""]) > 10
