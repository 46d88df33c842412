from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from planner.model.baseline import backbone
from planner.model.catalogue import Catalogue
from planner.model.errors import FormatError, InputError
from planner.model.estimate import exactly
from planner.model.link import Link, Site
from planner.model.network import Network
from probes.lab.profiles import (
    load_profile,
    profile_names,
    spread_over_providers,
    topology_of,
    topology_of_network,
)
from probes.lab.topology import GOODPUT_SHARE
from relayd.catalogue.files import built_in_folder
from relayd.catalogue.loading import load_catalogue

FOLDER = built_in_folder()
RTT_MS = cache(backbone.rtt_ms)
"""All profiles have the same pairs of regions, and each takes a while."""


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


def test_the_paper_profile_has_its_forty_regions_to_scale(catalogue: Catalogue) -> None:
    topology = topology_of(load_profile(FOLDER / "lab-paper.toml"), catalogue, RTT_MS)
    providers = [site.region.partition(":")[0] for site in topology.sites]
    assert [providers.count(name) for name in ("aws", "azure", "gcp")] == [11, 17, 12]
    site = topology.sites[topology.index("aws:us-east-1")]
    micro = catalogue.vm_types["aws:t2.micro"]
    assert site.vm_type == "aws:t2.micro"
    assert site.egress_mbps == pytest.approx(micro.wan_burst_gbps * 20)
    assert site.window_bytes == round(micro.window_mb * 20_000)
    i, j = topology.index("aws:sa-east-1"), topology.index("aws:ap-south-1")
    assert 300 < topology.rtt_ms[i][j] < 450  # the paper: about 390 ms


def test_azure_egress_to_other_clouds_is_uneven_and_the_same_every_time(
    catalogue: Catalogue,
) -> None:
    profile = load_profile(FOLDER / "lab-skyplane-2022.toml")
    first, second = (topology_of(profile, catalogue, RTT_MS) for _ in range(2))
    assert first == second
    regions = [site.region for site in first.sites]
    rates = {
        (regions[i], regions[j]): link.rate_mbps
        for (i, j), link in first.links.items()
        if link.rate_mbps is not None
    }
    assert all(src.startswith("azure:") and not dst.startswith("azure:") for src, dst in rates)
    assert len(rates) == 17 * (11 + 12)
    to_aws = sorted(rate for (_, dst), rate in rates.items() if dst.startswith("aws:"))
    assert to_aws[-1] <= 9600 * 0.02
    assert to_aws[-1] / to_aws[0] > 3


def test_every_profile_that_comes_with_relayd_can_be_brought_up(catalogue: Catalogue) -> None:
    assert {"paper", "skyplane-2022", "example"} <= set(profile_names(FOLDER))
    for name in profile_names(FOLDER):
        profile = load_profile(FOLDER / f"lab-{name}.toml")
        assert len(topology_of(profile, catalogue, RTT_MS, regions=3).sites) == 3


def test_a_profile_of_ones_own_sites_needs_no_catalogue(catalogue: Catalogue) -> None:
    profile = load_profile(FOLDER / "lab-example.toml")
    topology = topology_of(profile, catalogue, RTT_MS)
    berlin, singapore = topology.index("office:berlin"), topology.index("dc:singapore")
    assert topology.rtt_ms[berlin][singapore] == 190
    link = topology.links[berlin, singapore]
    assert (link.rate_mbps, link.loss_pct, link.jitter_ms) == (10, 0.1, 2)
    assert topology.sites[topology.index("dc:frankfurt")].flow_mbps == 100


SITES = 'name="x"\n[[site]]\nregion="a:1"\negress_mbps=1\ningress_mbps=1\nwindow_kb=100\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = ", "not TOML"),
        ("scale = 1", "name"),
        ('name = "x"\nscale = -1', "scale"),
        ('name = "x"\nscale = nan', "scale"),
        ('name = "x"\nsurprise = 1', "surprise"),
        ('name = "x"\n[[link]]\nsrc="a"\ndst="b"\nloss_pct = 101', "link.0.loss_pct"),
        ('name = "x"\n[vm_types]\naws = "none-such"', "none-such"),
        ('name = "x"\n[[site]]\nregion = "a:1"', "egress_mbps, ingress_mbps, window_kb"),
        (SITES + SITES.replace('name="x"\n', "").replace("a:1", "a:2"), "round-trip time"),
        (SITES + "scale=1", "site.0.scale"),
        (SITES.replace("window_kb=100", "window_kb=1"), "window"),
    ],
)
def test_a_wrong_profile_is_answered_with_what_is_wrong(
    tmp_path: Path, catalogue: Catalogue, text: str, says: str
) -> None:
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises((FormatError, InputError)) as caught:
        topology_of(load_profile(path), catalogue, RTT_MS)
    assert says in str(caught.value)


def test_a_number_of_regions_takes_each_provider_in_turn() -> None:
    names = ["a:1", "a:2", "a:3", "b:1", "c:1"]
    assert spread_over_providers(names, 4) == ["a:1", "b:1", "c:1", "a:2"]
    for count in (0, 6):
        with pytest.raises(InputError):
            spread_over_providers(names, count)


def test_a_lab_of_measurements_gives_the_measured_figures() -> None:
    caps = {"a:1": (5.0, 10.0), "b:1": (16.0, 8.0)}
    sites = {
        name: Site(name, "", exactly(out), exactly(into), exactly(3.0))
        for name, (out, into) in caps.items()
    }
    there = Link("a:1", "b:1", exactly(100.0), exactly(240.0), exactly(5.0))
    back = Link("b:1", "a:1", exactly(100.0), exactly(400.0), exactly(2.0))
    network = Network(sites, {"a:1": {"b:1": there}, "b:1": {"a:1": back}})
    topology = topology_of_network(network, scale=0.1)
    assert topology.sites[0].egress_mbps == pytest.approx(500 / GOODPUT_SHARE)
    assert topology.expected_aggregate_mbps(0, 1) == pytest.approx(500)
    assert topology.expected_aggregate_mbps(1, 0) == pytest.approx(200)
    assert topology.expected_flow_mbps(0, 1) == pytest.approx(24, rel=0.01)
    assert topology.expected_flow_mbps(1, 0) == pytest.approx(40, rel=0.01)
