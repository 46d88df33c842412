"""The entries that catalogue files may hold, with their fields, bounds and rules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    model_validator,
)

from planner.fields.shared import MOST_VMS
from planner.model.baseline.backbone import AREAS
from planner.model.catalogue import EgressPrice, Fee, Hosts, Pool, Region, Tier, VmType
from planner.model.errors import CatalogueError
from planner.model.quotas.vcpus import MOST_VCPUS, VcpuQuota, family_key
from planner.model.throughput import stock_window_mb
from planner.model.units import GB_PER_GIB

_RESERVED_PROVIDERS = {"provider", "country", "continent", "city", "set"}
PRICES = ("usd_per_gb", "usd_per_gib", "tiers")


def _form(pattern: str, problem: str, remedy: str) -> AfterValidator:
    def check(text: str) -> str:
        """Return a text, or raise a CatalogueError if it is of another form or too long."""
        if not re.fullmatch(pattern, text) or len(text) > 100:
            raise CatalogueError("", problem, value=text, remedy=remedy)
        return text

    return AfterValidator(check)


_Id = Annotated[
    str,
    _form(
        r"[a-z][a-z0-9-]*:[A-Za-z0-9][A-Za-z0-9._-]*",
        "must look like provider:name",
        "Write, for example, aws:us-east-1 or onprem:berlin.",
    ),
]
_PlainName = Annotated[
    str,
    _form(
        r"[a-z][a-z0-9-]*",
        "is not a plain name",
        "Use small letters, digits and hyphens, beginning with a letter.",
    ),
]
_RuleName = Annotated[
    str,
    _form(
        r"[A-Za-z0-9][A-Za-z0-9 ._-]*",
        "is not a plain name",
        "Use letters, digits, dots, hyphens and spaces.",
    ),
]
_Country = Annotated[
    str,
    _form(
        r"([A-Z]{2})?",
        "must be a country code",
        "Use two capital letters (ISO 3166-1), such as DE.",
    ),
]
_Date = Annotated[
    str,
    _form(r"\d{4}-(0[1-9]|1[0-2])(-\d\d)?", "must be a date", 'Write "2022-05" or "2022-05-31".'),
]
_Text = Annotated[str, Field(max_length=500)]
_Gbps = Annotated[float, Field(gt=0, le=10_000)]
_Price = Annotated[float, Field(ge=0, le=10_000)]
_Vcpus = Annotated[int, Field(ge=0, le=MOST_VCPUS)]
_Terms = Annotated[list[_Text], Field(min_length=1)]
_OneOrMore = Annotated[_Terms, BeforeValidator(lambda at: [at] if isinstance(at, str) else at)]
_Connections = Annotated[
    dict[Literal["in", "out"], Annotated[int, Field(gt=0, le=100_000)]],
    BeforeValidator(
        lambda stated: stated if isinstance(stated, dict) else _in_and_out(str(stated))
    ),
]
_Share = Annotated[float, Field(ge=0, lt=1)]


def _in_and_out(text: str) -> dict[str, int]:
    """Read numbers of connections, such as ``10 in, 128 out``."""
    found = [re.fullmatch(r" *(\d{1,6}) (in|out) *", part) for part in text.split(",")]
    stated = {one[2]: int(one[1]) for one in found if one}
    if len(stated) < len(found):
        remedy = 'Write "10 in, 128 out", "10 in" or "128 out".'
        raise CatalogueError("", "must say how many go in and out", value=text, remedy=remedy)
    return stated


class CatalogueEntry(BaseModel):
    """A table of a catalogue file: no field but those that it may have."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class _SourcedEntry(CatalogueEntry):
    source: _Text = ""
    as_of: _Date | None = None

    @property
    def dated(self) -> str:
        """The source with its date."""
        return self.source + (f", as of {self.as_of}" if self.as_of else "")


class RegionEntry(CatalogueEntry):
    """A ``[[region]]``; one with coordinates joins the baseline graph unless it says no."""

    id: _Id
    city: _Text = ""
    country: _Country = ""
    continent: Literal["", "NAM", "SAM", "EU", "AF", "AS", "OC"] = ""
    area: _Text = ""
    latitude_deg: Annotated[float, Field(ge=-90, le=90)] | None = None
    longitude_deg: Annotated[float, Field(ge=-180, le=180)] | None = None
    baseline: bool | None = None
    access: Literal["", "restricted", "government", "china", "sovereign"] = ""
    private_network: _Text = ""
    connections: _Connections = {}

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        if self.id.partition(":")[0] in _RESERVED_PROVIDERS:
            problem = "has a provider that is a word of rules"
            raise CatalogueError("id", problem, value=self.id, remedy="Rename it.")
        if self.area and self.area not in AREAS:
            remedy = f"Use one of {', '.join(AREAS)}, or leave it out."
            raise CatalogueError("area", "is not known", value=self.area, remedy=remedy)
        if (self.latitude_deg is None) != (self.longitude_deg is None):
            missing = "latitude_deg" if self.latitude_deg is None else "longitude_deg"
            raise CatalogueError(missing, "is missing", remedy="Give both coordinates or neither.")
        if self.baseline and self.latitude_deg is None:
            remedy = "Give latitude_deg and longitude_deg: the baseline is computed from them."
            raise CatalogueError("baseline", "needs coordinates", value=True, remedy=remedy)
        return self

    def region(self) -> Region:
        """Return the region that it describes."""
        known = self.latitude_deg is not None
        baseline = known if self.baseline is None else self.baseline
        allowed = {f"connections_{way}": count for way, count in self.connections.items()}
        stated = self.model_dump(exclude={"connections"}) | allowed
        return Region(**{**stated, "baseline": baseline})


class VmTypeEntry(_SourcedEntry):
    """A ``[[vm_type]]``."""

    id: _Id
    vcpus: Annotated[int, Field(ge=1, le=10_000)]
    egress_gbps: _Gbps
    ingress_gbps: _Gbps
    flow_gbps: _Gbps
    window_mb: Annotated[float, Field(gt=0, le=10_000)] | None = None
    price_usd_per_h: _Price
    burstable: bool = False
    region_egress_gbps: _Gbps | None = None
    burst_gbps: _Gbps | None = None
    tier1_gbps: _Gbps | None = None
    hosts: Hosts = "as they come"
    suggested: bool = True

    def vm_type(self) -> VmType:
        """Return the VM type that it describes."""
        window_mb = self.window_mb or stock_window_mb(self.id)
        more = {"window_mb": window_mb, "source": self.dated}
        return VmType(**{**self.model_dump(exclude={"as_of"}), **more})


class VmPriceEntry(_SourcedEntry):
    """A ``[[vm_price]]``: what a VM type costs in some regions of its provider."""

    type: _Id
    usd_per_h: Annotated[dict[_Text, _Price], Field(min_length=1)]


def prices_by_region(vm_type: str, usd_per_h: Mapping[str, float]) -> dict[str, float]:
    """Return USD for an hour by the region's id; names stand for the type's provider's."""
    provider = vm_type.partition(":")[0]
    return {name if ":" in name else f"{provider}:{name}": usd for name, usd in usd_per_h.items()}


class DiscountEntry(CatalogueEntry):
    """An entry of ``[discounts]``: shares that a contract takes off."""

    egress: _Share | None = None
    vm: _Share | None = None


class TierEntry(CatalogueEntry):
    """One tier of an ``[[egress]]``."""

    usd_per_gb: _Price | None = None
    usd_per_gib: _Price | None = None
    up_to_gb: Annotated[float, Field(gt=0)] | None = None
    up_to_gib: Annotated[float, Field(gt=0)] | None = None

    def tier(self) -> Tier:
        """Return USD per GB and the end in GB of 10^9 bytes, whatever it is billed by."""
        usd, end = self.usd_per_gb, self.up_to_gb
        if usd is None:
            usd = (self.usd_per_gib or 0.0) / GB_PER_GIB
        if self.up_to_gib is not None:
            end = self.up_to_gib * GB_PER_GIB
        return Tier(usd, inf if end is None else end)


class EgressEntry(_SourcedEntry):
    """An ``[[egress]]``: a flat ``usd_per_gb`` or ``usd_per_gib``, or ``tiers``."""

    name: _RuleName
    sources: _Terms = Field(alias="from")
    destinations: _Terms = Field(alias="to")
    usd_per_gb: _Price | None = None
    usd_per_gib: _Price | None = None
    tiers: Annotated[list[TierEntry], Field(min_length=1)] | None = None
    unconfirmed: bool = False
    # The rule whose price an import stated more exactly: a user's own price for it goes before.
    in_place_of: _Text = ""

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        if sum(getattr(self, price) is not None for price in PRICES) != 1:
            problem = "or a flat price must be given, and only one of them"
            raise CatalogueError("tiers", problem, remedy="Give a flat `usd_per_gb`, or `tiers`.")
        tiers = self.tiers or ()
        if any((tier.usd_per_gb is None) == (tier.usd_per_gib is None) for tier in tiers):
            remedy = "Give usd_per_gb in each, or usd_per_gib."
            raise CatalogueError("tiers", "need one price each", remedy=remedy)
        if any(None not in (tier.up_to_gb, tier.up_to_gib) for tier in tiers):
            raise CatalogueError("tiers", "have two ends", remedy="Give up_to_gb, or up_to_gib.")
        ends = [tier.tier().up_to_gb for tier in tiers] or [inf]
        if ends[-1] < inf or any(end >= after for end, after in pairwise(ends)):
            remedy = "Sort them from small to large volumes; leave up_to_gb out of the last."
            problem = "must ascend in up_to_gb, and only the last may have no end"
            raise CatalogueError("tiers", problem, value=ends, remedy=remedy)
        return self

    def price(self) -> EgressPrice:
        """Return the price rule that it states."""
        flat = TierEntry(usd_per_gb=self.usd_per_gb, usd_per_gib=self.usd_per_gib)
        return EgressPrice(
            self.name,
            tuple(self.sources),
            tuple(self.destinations),
            tuple(tier.tier() for tier in self.tiers or [flat]),
            self.dated,
            self.as_of or "",
            self.unconfirmed,
        )


class FeeEntry(_SourcedEntry):
    """A ``[[fee]]``: one besides egress, at sites or between them, per GB or per hour."""

    name: _RuleName
    at: _OneOrMore | None = None
    sources: _OneOrMore | None = Field(alias="from", default=None)
    destinations: _OneOrMore | None = Field(alias="to", default=None)
    direction: Literal["out", "in", "both"] = "both"
    usd_per_gb: _Price | None = None
    usd_per_1000_requests: _Price | None = None
    request_mb: Annotated[float, Field(gt=0, le=10_000)] | None = None
    usd_per_h: _Price | None = None
    gbps: _Gbps | None = None

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        ends = self.sources, self.destinations
        if any(ends) == bool(self.at) or (any(ends) and not all(ends)):
            remedy = 'Write `at = "aws:eu-west-1"` of a site, or `from` and `to` of links.'
            raise CatalogueError("at", "or `from` and `to` must be given", remedy=remedy)
        if {self.usd_per_gb, self.usd_per_1000_requests, self.usd_per_h} == {None}:
            remedy = "Give usd_per_gb, usd_per_1000_requests or usd_per_h."
            raise CatalogueError("usd_per_gb", "or another price is missing", remedy=remedy)
        by_request = self.usd_per_1000_requests is not None
        if by_request != bool(self.request_mb) or (by_request and self.usd_per_gb is not None):
            problem = "goes with usd_per_1000_requests, and both without usd_per_gb"
            remedy = "Write `usd_per_1000_requests = 0.005`, `request_mb = 8`, as a fee of its own."
            raise CatalogueError("request_mb", problem, remedy=remedy)
        if self.gbps and self.at:
            remedy = "Give `from` and `to`: an interconnect is between sites."
            raise CatalogueError("gbps", "is of an interconnect", value=self.gbps, remedy=remedy)
        return self

    def fee(self) -> Fee:
        """Return the fee that it states."""
        per_gb, each_usd = 1 / (self.request_mb or 1.0), self.usd_per_1000_requests
        each_usd = (self.usd_per_gb or 0.0) if each_usd is None else each_usd
        ends: dict[str, Any] = {
            of: tuple(getattr(self, of) or ()) for of in ("at", "sources", "destinations")
        }
        stated = self.model_dump(include={"name", "direction", "gbps"}) | ends
        usd: dict[str, Any] = {"usd_per_gb": each_usd * per_gb, "usd_per_h": self.usd_per_h or 0.0}
        usd |= {"unit": "1,000 requests" if self.request_mb else "GB", "units_per_gb": per_gb}
        return Fee(**stated, **usd, source=self.dated, as_of=self.as_of or "")


class VcpuQuotaEntry(_SourcedEntry):
    """A ``[[vcpu_quota]]``."""

    region: Annotated[str, Field(min_length=1, max_length=500)]
    family: Annotated[str, Field(min_length=1, max_length=200)]
    vcpus: _Vcpus
    used_vcpus: _Vcpus = 0
    types: _Terms | None = None

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        if not self.types and not family_key(self.family):
            problem = "is not one whose VM types relayd knows"
            remedy = 'Say which count: `types = ["m5.*", "c5.*"]`.'
            raise CatalogueError("family", problem, value=self.family, remedy=remedy)
        return self

    def quota(self) -> VcpuQuota:
        """Return the quota that it states."""
        stated = self.model_dump(exclude={"source"})
        more = {"types": tuple(self.types or ()), "source": self.dated, "as_of": self.as_of or ""}
        return VcpuQuota(**stated | more)


class PoolEntry(CatalogueEntry):
    """A ``[[pool]]``."""

    region: _Id
    vm_type: _Id
    vms: Annotated[int, Field(gt=0, le=MOST_VMS, strict=True)]

    def pool(self) -> Pool:
        """Return the pool that it states."""
        return Pool(self.vms, self.vm_type)


class EntryKind(NamedTuple):
    """A kind of entry."""

    value: TypeAdapter[Any]
    # The fields that tell entries of it from each other; none where it is a table, whose keys
    # do
    keys: tuple[str, ...] = ()
    name: TypeAdapter[str] = TypeAdapter(_PlainName)  # of a table's keys
    fields: Sequence[str] = ()  # what its entries may have, as files have it


def fields_of(model: type[CatalogueEntry]) -> list[str]:
    """Return the names of a table's fields, as files have them, its own before the source."""
    own = sorted(
        model.model_fields.items(), key=lambda field: field[0] in _SourcedEntry.model_fields
    )
    return [field.alias or name for name, field in own]


def _listed(model: type[CatalogueEntry], *keys: str) -> EntryKind:
    return EntryKind(TypeAdapter(model), keys, fields=fields_of(model))


KINDS = {
    "region": _listed(RegionEntry, "id"),
    "vm_type": _listed(VmTypeEntry, "id"),
    "vm_price": _listed(VmPriceEntry, "type"),
    "egress": _listed(EgressEntry, "name"),
    "fee": _listed(FeeEntry, "name"),
    "vcpu_quota": _listed(VcpuQuotaEntry, "region", "family"),
    "pool": _listed(PoolEntry, "region"),
    "aliases": EntryKind(TypeAdapter(Annotated[list[_Id], Field(min_length=1)])),
    "default_vm_types": EntryKind(TypeAdapter(_Id)),
    "vm_price_ratios": EntryKind(
        TypeAdapter(Annotated[float, Field(gt=0, le=100, strict=True, allow_inf_nan=False)]),
        name=TypeAdapter(_Id),
    ),
    "discounts": EntryKind(
        TypeAdapter(DiscountEntry), name=TypeAdapter(str), fields=fields_of(DiscountEntry)
    ),
}
"""By what they are called in a file."""
OTHER_ALIAS: TypeAdapter[str] = TypeAdapter(_PlainName)
"""An alias that means the same as another one."""
