"""Fees recomputed from the source files by themselves, and VM prices of regions.

The rules are those of the files' README: what was fetched or quoted holds; what is from memory
holds unless the list of 2022 is dearer. Free allowances are an account's and are not taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import inf
from statistics import mode

import pytest

from planner.model.baseline.modelled_links import baseline_network
from planner.model.pricing import CataloguePrices
from relayd.catalogue.files import built_in_folder
from relayd.catalogue.loading import load_catalogue
from tests.shared_data import shared_rows

CATALOGUE = load_catalogue()
GIB = 2**30 / 1e9
Tiers = list[tuple[float, float]]

AMERICAS = ("aws:us-east-1", "azure:brazilsouth", "aws:sa-east-1", "azure:mexicocentral")
# The areas of Google's prices between regions, with regions of each; the first is in the grid.
AREAS = {
    "NorthAmerica": ("gcp:us-central1", "gcp:us-south1"),
    "Europe": ("gcp:europe-west1", "gcp:europe-west4", "gcp:europe-north2"),
    "Asia": ("gcp:asia-south1", "gcp:asia-east1"),
    "Indonesia": ("gcp:asia-southeast2",),
    "Oceania": ("gcp:australia-southeast1", "gcp:australia-southeast2"),
    "MiddleEast": ("gcp:me-west1", "gcp:me-central2"),
    "LatinAmerica": ("gcp:southamerica-east1", "gcp:northamerica-south1"),
    "Africa": ("gcp:africa-south1",),
}
ZONES = {
    "zone 1": ("azure:eastus", "azure:spaincentral", "azure:mexicocentral"),
    "zone 2": ("azure:southeastasia", "azure:newzealandnorth", "azure:israelcentral"),
    "zone 3": ("azure:brazilsouth", "azure:chilecentral"),
}
CONTINENTS_OF_AZURE = {
    "North America": "azure:eastus",
    "Europe": "azure:westeurope",
    "Asia Oceania Middle East Africa": "azure:japaneast",
    "South America": "azure:brazilsouth",
}


@cache
def prices_of_2026() -> list[dict[str, str]]:
    return shared_rows("catalogue-2026/egress_2026.csv")


@cache
def grid_of_2022() -> dict[tuple[str, str], float]:
    rows = shared_rows("egress_usd_per_gb_2022-05.csv")
    return {(row["src"], row["dst"]): float(row["egress_usd_per_gb"]) for row in rows}


def dearest_in_2022(sources: Sequence[str], destinations: Sequence[str]) -> float:
    grid = grid_of_2022()
    return max((grid.get((a, b), 0.0) for a in sources for b in destinations), default=0.0)


def usual_in_2022(area: str) -> float:
    """What Google charged for most links out of an area, where the grid lacks the other end."""
    inside = AREAS[area]
    found = [
        usd
        for (src, dst), usd in grid_of_2022().items()
        if src in inside and dst.startswith("gcp:") and dst not in inside
    ]
    return mode(found) if found else 0.0


def tiers_of(source: str, destination: str, in_2022: float = 0.0) -> Tiers:
    """Tiers in GB of 10^9 bytes and USD a GB; without what is free."""
    found: Tiers = []
    for row in prices_of_2026():
        if row["from_scope"] != source or not row["to_scope"].startswith(destination):
            continue
        usd = float(row["usd_per_gb"])
        if usd == 0:
            continue
        if row["basis"].startswith("not fetched") and not found:
            usd = max(usd, in_2022)
        size = GIB if row["unit"] == "GiB" else 1.0
        found.append((float(row["tier_upto_gb"] or inf) * size, usd / size))
    found[-1] = (inf, found[-1][1])
    return found


def fee_usd(tiers: Tiers, volume_gb: float) -> float:
    floor = total = 0.0
    for end, usd in tiers:
        total += max(0.0, min(volume_gb, end) - floor) * usd
        floor = end
    return total


def cases() -> Iterator[tuple[str, str, Tiers]]:
    aws = tiers_of("aws:US and EU standard regions", "internet")
    for src in ("aws:us-east-1", "aws:us-west-2", "aws:eu-west-1", "aws:eu-north-1"):
        for dst in ("gcp:us-east1", "azure:southeastasia", "gcp:africa-south1"):
            yield src, dst, aws
    for dst in ("aws:eu-west-1", "aws:ap-southeast-7", "aws:mx-central-1"):
        yield "aws:us-west-2", dst, tiers_of("aws:US regions", "aws:other regions")
    yield "aws:us-east-1", "aws:us-east-2", tiers_of("aws:us-east-1", "aws:us-east-2")
    yield "aws:us-east-2", "aws:us-east-1", tiers_of("aws:us-east-2", "aws:us-east-1")
    for row in {row["from_scope"]: row for row in prices_of_2026()}.values():
        scope = row["from_scope"]
        zone = scope.removeprefix("azure:").partition(":")[0]
        for src in ZONES.get(zone, ()):
            in_2022 = dearest_in_2022(ZONES[zone], ["aws:us-east-1"])
            yield src, "aws:us-east-1", tiers_of(scope, "internet", in_2022)
        if scope.startswith("gcp:") and "internet:americas" in row["to_scope"]:
            # One destination a source, in turn.
            dst = AMERICAS[sum(map(ord, scope)) % len(AMERICAS)]
            yield scope, dst, tiers_of(scope, "internet:americas")
    for scope, src in CONTINENTS_OF_AZURE.items():
        other = "azure:southafricanorth" if "Asia" not in scope else "azure:eastus"
        kind = "North America or Europe" if scope in {"North America", "Europe"} else scope
        in_2022 = dearest_in_2022([src], [other])
        yield src, other, tiers_of(f"azure:{kind}", "azure:other continent", in_2022)
    yield "azure:eastus", "azure:westus3", tiers_of("azure:North America", "azure:North America")
    yield "azure:westeurope", "azure:polandcentral", tiers_of("azure:Europe", "azure:Europe")
    for a, sources in AREAS.items():
        for b, destinations in AREAS.items():
            src, dst = sources[0], destinations[-1]
            if src == dst:
                continue
            in_2022 = dearest_in_2022(sources, destinations)
            in_2022 = in_2022 or max(usual_in_2022(a), usual_in_2022(b))
            yield src, dst, tiers_of(f"gcp-inter-region:{a}", f"gcp-inter-region:{b}", in_2022)


def test_fees_of_a_hundred_pairs_are_those_of_the_source_files_to_the_cent() -> None:
    checked = list(cases())
    assert len(checked) >= 100
    assert {(a[:3], b[:3]) for a, b, _ in checked} >= {
        ("aws", "gcp"),
        ("azu", "azu"),
        ("gcp", "gcp"),
    }
    network = baseline_network(CATALOGUE)
    prices = CataloguePrices(CATALOGUE, network)
    differing = []
    for number, (src, dst, tiers) in enumerate(checked):
        for volume_gb in (10.0, 700.0 + 90 * number, 60_000.0, 400_000.0):
            ours = prices.egress_usd_per_gb(src, dst, volume_gb) * volume_gb
            theirs = fee_usd(tiers, volume_gb)
            if abs(ours - theirs) >= 0.005:
                differing.append((src, dst, volume_gb, round(ours, 2), round(theirs, 2)))
    assert differing == []


def test_vms_cost_what_they_do_in_their_region() -> None:
    rows = shared_rows("catalogue-2026/vm_price_by_region_2026.csv")
    ratios = {f"{row['provider']}:{row['region']}": row for row in rows}
    network = baseline_network(CATALOGUE)
    prices = CataloguePrices(CATALOGUE, network)
    assert set(CATALOGUE.vm_price_ratios) == set(CATALOGUE.regions)
    for region, site in network.sites.items():
        usd_per_h = CATALOGUE.vm_types[site.vm_type].price_usd_per_h
        if region in ratios:
            ratio = float(ratios[region]["ratio_to_reference"])
            assert prices.vm_usd_per_h(region) == pytest.approx(usd_per_h * ratio)


@pytest.mark.parametrize(
    ("option", "src", "dst", "volume_gb", "usd"),
    [
        ("free-100gb", "aws:us-east-1", "gcp:us-east1", 150.0, 50 * 0.09),
        ("free-100gb", "azure:uksouth", "aws:us-east-1", 100.0, 0.0),
        ("gcp-eu-multicloud", "gcp:europe-west1", "aws:us-east-1", 5000.0, 0.0),
        ("gcp-eu-multicloud", "gcp:us-east1", "aws:us-east-1", 100.0, 100 / GIB * 0.12),
        ("gcp-standard-tier", "gcp:us-east1", "aws:us-east-1", 100.0, 100 / GIB * 0.085),
    ],
)
def test_what_a_user_is_entitled_to_is_a_file_to_name(
    option: str, src: str, dst: str, volume_gb: float, usd: float
) -> None:
    catalogue = load_catalogue([built_in_folder() / f"prices-{option}.toml"])
    prices = CataloguePrices(catalogue, baseline_network(catalogue))
    assert prices.egress_usd_per_gb(src, dst, volume_gb) * volume_gb == pytest.approx(usd)


def test_what_is_free_changes_nothing_else_of_a_price_list() -> None:
    """The file repeats our tiers: it may not fall behind them."""
    catalogue = load_catalogue([built_in_folder() / "prices-free-100gb.toml"])
    ours = {price.name: price for price in CATALOGUE.egress_prices}
    # Azure charges nothing between zones, of which the file says nothing.
    free = [
        price
        for price in catalogue.egress_prices
        if price.tiers[0].usd_per_gb == 0 and price.name != "azure-zones"
    ]
    names = {price.name for price in free}
    # What AWS leaves free in China, which is billed apart, is not known.
    ours_to_the_internet = {n for n in ours if n.startswith(("aws-internet", "azure-internet"))}
    assert names == ours_to_the_internet - {"aws-internet-china"}
    for price in free:
        assert price.tiers[1:] == ours[price.name].tiers
