"""Comparison of a price list with the catalogue, and the overlay that applies it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from hashlib import blake2b
from math import inf, isclose
from typing import Any, NamedTuple

from planner.model.catalogue import Catalogue, Tier
from planner.model.errors import DataError, FormatError
from planner.model.quotas.vcpus import families_of, family_key
from relayd.catalogue.documents.formats import prices_of_types
from relayd.catalogue.documents.price_list import INTERNET, PriceList

# Where each provider's VM types have their list price; other regions are a multiple of it.
HOME_REGION = {"aws": "aws:us-east-1", "azure": "azure:eastus", "gcp": "gcp:us-central1"}
_RENEWED_AFTER = timedelta(days=30)
_SAME = 1e-4  # a price that differs by less is the same


class PriceMove(NamedTuple):
    """A price that the list states otherwise than the catalogue: USD for an hour, or per GB."""

    subject: str
    before: float
    after: float

    @property
    def ratio(self) -> float:
        """The new price as a multiple of the old one."""
        return self.after / self.before if self.before else inf


class QuotaMove(NamedTuple):
    """The vCPUs that an account may run, and those in use; before, None where it was not known."""

    region: str
    family: str
    before: tuple[int, int] | None
    after: tuple[int, int]


@dataclass
class CatalogueComparison:
    """A price list compared with the catalogue below it."""

    # Every price and quota that both have, whether it moves or not; of tiers the first
    vms: list[PriceMove] = field(default_factory=list)
    traffic: list[PriceMove] = field(default_factory=list)
    quotas: list[QuotaMove] = field(default_factory=list)
    # In the list alone. They stay out: the list says neither what a type's network carries
    # nor where a region is.
    new_types: list[str] = field(default_factory=list)
    new_regions: list[str] = field(default_factory=list)
    # In the catalogue alone, of providers whose VMs the list has. They stay.
    missing_types: list[str] = field(default_factory=list)
    missing_regions: list[str] = field(default_factory=list)
    # The overlay, as a catalogue file; without entries where nothing would change
    document: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def compared(prices: PriceList, below: Catalogue, source: str) -> CatalogueComparison:
    """Compare a price list with the catalogue that it would be laid on.

    That is of built-in tables and overlays, without a user's files: those stay on top. The
    overlay's figures say that they are from `source`.
    """
    found = CatalogueComparison()
    of_types = prices.vm_usd_per_h | prices_of_types(prices.parts, below.vm_types)
    listed = {region for by_region in of_types.values() for region in by_region}
    sources = {src for src, _ in prices.traffic}
    found.new_regions = sorted((listed | sources) - below.regions.keys())
    found.new_types = sorted(of_types.keys() - set(below.vm_types))
    of = tuple(f"{name}:" for name in {t.partition(":")[0] for t in of_types})
    found.missing_types = sorted(
        name for name in set(below.vm_types) - of_types.keys() if name.startswith(of)
    )
    found.missing_regions = sorted(
        name for name in below.regions.keys() - listed if name.startswith(of)
    )
    stated = {"source": source} | ({"as_of": prices.as_of} if prices.as_of else {})
    types: list[dict[str, Any]] = []
    exact: list[dict[str, Any]] = []
    for type_id, by_region in sorted(of_types.items()):
        if (vm_type := below.vm_types.get(type_id)) is None:
            continue
        list_usd = vm_type.price_usd_per_h
        at_home = by_region.get(HOME_REGION.get(vm_type.provider, ""))
        if at_home is not None and _differ(at_home, list_usd):
            types.append({"id": type_id, "price_usd_per_h": _rounded(at_home)})
            list_usd = at_home
        differing = {}
        known = below.vm_prices.get(type_id, {})
        for region, usd in sorted(by_region.items()):
            if region in below.regions:
                before = below.vm_usd_per_h(region, type_id)
                found.vms.append(PriceMove(f"{type_id} in {region}", before, usd))
                by_ratio = list_usd * below.vm_price_ratios.get(region, 1.0)
                if _differ(usd, known.get(region, by_ratio)):
                    differing[region.partition(":")[2]] = _rounded(usd)
        if differing:
            exact.append({"type": type_id, "usd_per_h": differing, **stated})
    entries = {
        "vm_type": types,
        "vm_price": exact,
        "egress": _egress(found, prices, below, stated),
        "vcpu_quota": _quotas(found, prices, below, stated),
    }
    found.document = {kind: of_kind for kind, of_kind in entries.items() if of_kind}
    return found


def _egress(
    found: CatalogueComparison, prices: PriceList, below: Catalogue, stated: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Compare prices of traffic; return the entries that state the list's."""
    # Destinations of one source with the same tiers in place of the same rule share an entry.
    alike: dict[tuple[str, tuple[Tier, ...], str], list[str]] = {}
    for (source, destination), tiers in sorted(prices.egress.items()):
        if source not in below.regions:
            continue
        to_region, provider = destination, source.partition(":")[0]
        if destination == INTERNET:
            to_region = next(r for r in below.regions if r.partition(":")[0] != provider)
        elif destination not in below.regions:
            continue
        try:
            rule = below.egress_price(source, to_region)
        except DataError:
            continue
        to = "the internet" if destination == INTERNET else destination
        found.traffic.append(
            PriceMove(f"{source} to {to}", rule.tiers[0].usd_per_gb, tiers[0].usd_per_gb)
        )
        is_same = len(rule.tiers) == len(tiers) and not any(
            _differ(one.usd_per_gb, other.usd_per_gb) or _differ(one.up_to_gb, other.up_to_gb)
            for one, other in zip(rule.tiers, tiers, strict=True)
        )
        if not is_same or _renews(prices.as_of, rule.as_of):
            replaced = rule.name.partition(" for ")[2] or rule.name
            alike.setdefault((source, tiers, replaced), []).append(destination)
    entries = []
    for (source, tiers, replaced), destinations in alike.items():
        entry = {
            "from": [source],
            "to": destinations,
            "tiers": [
                {"usd_per_gb": _rounded(tier.usd_per_gb)}
                | ({} if tier.up_to_gb == inf else {"up_to_gb": tier.up_to_gb})
                for tier in tiers
            ],
            "in_place_of": replaced,
            **stated,
        }
        # A name of its own: a later import adds its rules after these, and changes none of them.
        unique = blake2b(f"{below.digest} {entry}".encode(), digest_size=3).hexdigest()
        name = f"{source.replace(':', '-')} {unique} for {replaced}"
        entries.append({"name": name, **entry})
    return entries


def _quotas(
    found: CatalogueComparison, prices: PriceList, below: Catalogue, stated: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Compare quotas; return the entries that state the list's."""
    counted = set[str]().union(*map(families_of, below.vm_types))
    known = {
        (quota.region, quota.family): (quota.vcpus, quota.used_vcpus) for quota in below.vcpu_quotas
    }
    entries: list[dict[str, Any]] = []
    for (region, family), (vcpus, used, place) in sorted(prices.quotas.items()):
        if region not in below.regions:
            if region.startswith("azure:"):
                remedy = "Name the file after its region, which it does not say: westeurope.json."
                raise FormatError(place, "is of no region of Azure", value=region, remedy=remedy)
            found.new_regions = sorted({*found.new_regions, region})
            continue
        if family_key(family) not in counted:
            prices.left_out["quotas that no known VM type counts against"] += 1
            continue
        found.quotas.append(QuotaMove(region, family, known.get((region, family)), (vcpus, used)))
        if known.get((region, family)) != (vcpus, used):
            figures = {"vcpus": vcpus, "used_vcpus": used}
            entries.append({"region": region, "family": family, **figures, **stated})
    return entries


def _renews(as_of: str, before: str) -> bool:
    """Whether the same price of a later day is worth stating, since old ones are warned of."""
    if not as_of or not before:
        return as_of > before
    old, new = (date.fromisoformat(f"{text}-01"[:10]) for text in (before, as_of))
    return new - old > _RENEWED_AFTER


def _differ(one: float, other: float) -> bool:
    return not isclose(one, other, rel_tol=_SAME)


def _rounded(usd: float) -> float:
    return float(f"{usd:.9g}")
