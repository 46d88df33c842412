"""Names of regions, and rules that select them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.aliases import permitted, resolve, resolve_many
from planner.model.catalogue import Catalogue, Region
from planner.model.errors import AmbiguousRegionError, InputError, UnknownRegionError
from tests.properties import examples

REGIONS = [
    Region("aws:us-east-1", "Ashburn", "US", "NAM", "NAM"),
    Region("aws:sa-east-1", "Sao Paulo", "BR", "SAM", "SAM"),
    Region("aws:eu-central-1", "Frankfurt", "DE", "EU", "EU"),
    Region("azure:eastus", "Ashburn", "US", "NAM", "NAM"),
    Region("azure:brazilsouth", "Sao Paulo", "BR", "SAM", "SAM"),
    Region("azure:uksouth", "London", "GB", "EU", "EU"),
    Region("gcp:europe-west3", "Frankfurt", "DE", "EU", "EU"),
    Region("gcp:southamerica-east1", "Sao Paulo", "BR", "SAM", "SAM"),
    Region("onprem:lab"),
    Region("onprem:eastus", "Berlin", "DE", "EU"),
]
CATALOGUE = Catalogue(
    regions={region.id: region for region in REGIONS},
    aliases={
        "us-east": ("aws:us-east-1", "azure:eastus"),
        "sa": ("aws:sa-east-1", "gcp:southamerica-east1", "azure:brazilsouth"),
        "uk": ("azure:uksouth",),
    },
    vm_types={},
    default_vm_types={},
    egress_prices=(),
)
KNOWN = ("ibm:lon02", "gcp:us-east1")


def name_of(text: str, prefer: str | None = None) -> str:
    return resolve(text, CATALOGUE, known=KNOWN, prefer_provider=prefer).region_id


@pytest.mark.parametrize(
    ("text", "region_id"),
    [
        ("aws:us-east-1", "aws:us-east-1"),
        ("  AWS:US-East-1 ", "aws:us-east-1"),
        ("us-east-1", "aws:us-east-1"),
        ("us-east1", "gcp:us-east1"),
        ("ibm:lon02", "ibm:lon02"),
        ("us-east", "aws:us-east-1"),
        ("US-EAST", "aws:us-east-1"),
        ("azure:sa", "azure:brazilsouth"),
        ("uk", "azure:uksouth"),
        ("london", "azure:uksouth"),
        ("gcp:Frankfurt", "gcp:europe-west3"),
        ("aws:são  paulo", "aws:sa-east-1"),
        ("AWS Sao Paulo", "aws:sa-east-1"),
        ("azure east us", "azure:eastus"),
        ("Frankfurt (Google)", "gcp:europe-west3"),
        ("amazon/us-east-1", "aws:us-east-1"),
        ("us-east-1a", "aws:us-east-1"),
        ("gcp:us-east1-b", "gcp:us-east1"),
    ],
)
def test_every_way_to_name_a_region(text: str, region_id: str) -> None:
    assert name_of(text) == region_id


def test_an_alias_takes_its_first_region_and_says_so() -> None:
    assert resolve("sa", CATALOGUE).note == (
        "sa is taken for aws:sa-east-1, not gcp:southamerica-east1, azure:brazilsouth."
    )
    assert resolve("uk", CATALOGUE).note == ""
    assert resolve("azure:sa", CATALOGUE).note == ""


def test_the_other_ends_provider_goes_first() -> None:
    found = resolve("sa", CATALOGUE, prefer_provider="azure")
    assert found.region_id == "azure:brazilsouth"
    assert (found.name, found.others) == ("sa", ("aws:sa-east-1", "gcp:southamerica-east1"))
    assert name_of("sa", prefer="ibm") == "aws:sa-east-1"
    assert name_of("Frankfurt", prefer="gcp") == "gcp:europe-west3"
    assert name_of("eastus", prefer="azure") == "azure:eastus"


def test_what_was_measured_goes_before_the_other_ends_provider() -> None:
    for known, region_id in (
        (["gcp:southamerica-east1"], "gcp:southamerica-east1"),
        (["gcp:southamerica-east1", "azure:brazilsouth"], "azure:brazilsouth"),
        (["gcp:us-east4"], "azure:brazilsouth"),
    ):
        taken = known.copy
        found = resolve("sa", CATALOGUE, prefer_provider="azure", preferred=taken)
        assert found.region_id == region_id
    assert resolve("Frankfurt", CATALOGUE, preferred=lambda: {"gcp:europe-west3"}).others


@pytest.mark.parametrize("text", ["Frankfurt", "eastus", "são paulo"])
def test_a_city_or_bare_name_of_several_providers_is_ambiguous(text: str) -> None:
    for prefer in (None, "ibm"):
        with pytest.raises(AmbiguousRegionError, match="--src fits several regions") as caught:
            resolve(text, CATALOGUE, field="--src", prefer_provider=prefer)
        assert len(caught.value.matches) > 1
        assert set(caught.value.matches) <= set(CATALOGUE.regions)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("us-est-1", "us-east-1"),
        ("azure:eastsu", "azure:eastus"),
        ("Frankfort", "Frankfurt"),
        ("aws sao paolo", "aws:sa-east-1"),
        ("gcp:us-east", "aws:us-east-1"),  # an alias without a region of that provider
    ],
)
def test_an_unknown_name_comes_with_near_matches(text: str, near: str) -> None:
    with pytest.raises(UnknownRegionError) as caught:
        resolve(text, CATALOGUE, field="--dst")
    assert near in caught.value.near
    assert near in str(caught.value)


@pytest.mark.parametrize("text", ["r2:weur", "oci:us-ashburn-1", "hetzner:fsn1"])
def test_an_unknown_cloud_comes_with_an_example_file_that_is_there(text: str) -> None:
    with pytest.raises(UnknownRegionError) as caught:
        resolve(text, CATALOGUE, field="--dst")
    (file,) = re.findall(r"configs/[\w-]+\.example\.toml", str(caught.value))
    provider = text.partition(":")[0].replace("oci", "oracle")
    assert f'"{provider}:' in (Path(__file__).parents[3] / file).read_text()


def test_a_near_name_of_the_same_cloud_goes_before_an_example() -> None:
    known = ["r2:weur", *CATALOGUE.regions]
    with pytest.raises(UnknownRegionError, match="Did you mean r2:weur"):
        resolve("r2:wuer", CATALOGUE, field="--dst", known=known)


def test_nothing_is_near_to_nonsense() -> None:
    for text in ("", "  ", "zzzz", ":", "aws:", "x" * 100_000):
        with pytest.raises(UnknownRegionError):
            resolve(text, CATALOGUE)


PIECES = ["aws", "azure", ":", "sa", "us-east", "eastus", "Frankfurt", " ", "*", "[", "é", "\ud800"]
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=5).map("".join))


@settings(max_examples=examples(45), deadline=None)
@given(TEXTS, st.sampled_from([None, "aws", "gcp", "none"]))
def test_any_text_is_a_region_or_a_clear_error(text: str, prefer: str | None) -> None:
    try:
        found = resolve(text, CATALOGUE, known=KNOWN, prefer_provider=prefer)
    except (UnknownRegionError, AmbiguousRegionError):
        return
    assert found.region_id in {*CATALOGUE.regions, *KNOWN}


@given(st.lists(TEXTS, max_size=3))
def test_any_rule_selects_known_regions_or_is_a_clear_error(texts: list[str]) -> None:
    try:
        certain = resolve_many(texts, CATALOGUE, known=KNOWN)
    except InputError:
        return
    possible = resolve_many(texts, CATALOGUE, known=KNOWN, doubtful=True)
    assert certain <= possible <= {*CATALOGUE.regions, *KNOWN}
    assert bool(certain) == bool(texts)


@pytest.mark.parametrize(
    ("rule", "selected"),
    [
        ("provider:azure", {"azure:eastus", "azure:brazilsouth", "azure:uksouth"}),
        ("ibm", {"ibm:lon02"}),
        ("country:br", {"aws:sa-east-1", "azure:brazilsouth", "gcp:southamerica-east1"}),
        ("Country:UK", {"azure:uksouth"}),
        ("continent:NAM", {"aws:us-east-1", "azure:eastus"}),
        ("sa", {"aws:sa-east-1", "azure:brazilsouth", "gcp:southamerica-east1"}),
        ("azure:sa", {"azure:brazilsouth"}),
        ("Frankfurt", {"aws:eu-central-1", "gcp:europe-west3"}),
        ("city:berlin", {"onprem:eastus"}),
        ("eastus", {"azure:eastus", "onprem:eastus"}),
        ("*:*-1", {"aws:us-east-1", "aws:sa-east-1", "aws:eu-central-1"}),
        ("gcp:us-*", {"gcp:us-east1"}),
        ("set:sa", {"aws:sa-east-1", "azure:brazilsouth", "gcp:southamerica-east1"}),
    ],
)
def test_what_a_rule_selects(rule: str, selected: set[str]) -> None:
    assert resolve_many([rule], CATALOGUE, known=KNOWN) == selected


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("provider:oracle", "Providers are aws, azure, gcp, ibm, onprem."),
        ("country:FR", "Countries are BR, DE, GB, US."),
        ("country:", "Countries are"),
        ("continent:NA", "Continents are NAM, SAM, EU."),
        ("city:Paris", "Cities are"),
        ("gcp:asia-*", "is not a known region"),
        ("us-est", "us-east"),
        ("set:us-est", "us-east"),
    ],
)
def test_a_rule_that_selects_nothing_is_an_error(rule: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve_many(["sa", rule], CATALOGUE, field="--avoid", known=KNOWN)
    assert said in str(caught.value)
    assert str(caught.value).startswith("--avoid ")


def test_a_region_of_unknown_country_passes_no_rule_about_countries() -> None:
    unknown = {"onprem:lab", *KNOWN}
    everywhere = {*CATALOGUE.regions, *KNOWN}
    assert permitted(CATALOGUE, known=KNOWN) == everywhere
    assert permitted(CATALOGUE, allow=["country:DE"], known=KNOWN) == {
        "aws:eu-central-1",
        "gcp:europe-west3",
        "onprem:eastus",
    }
    for rule in ("country:DE", "continent:SAM", "city:London"):
        assert not unknown & permitted(CATALOGUE, avoid=[rule], known=KNOWN)
    assert unknown <= permitted(CATALOGUE, avoid=["sa", "provider:aws"], known=KNOWN)
    assert permitted(CATALOGUE, allow=["continent:EU"], avoid=["provider:gcp"]) == {
        "aws:eu-central-1",
        "azure:uksouth",
        "onprem:eastus",
    }
