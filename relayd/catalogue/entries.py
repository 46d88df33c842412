"""The entries that catalogue files may hold, with their fields and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from planner.model.quotas.vcpus import MOST_VCPUS
from planner.model.units import GB_PER_GIB

RegionId: TypeAlias = Annotated[
    str, Field(pattern=r"^[a-z][a-z0-9-]*:[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)
]
_Text = Annotated[str, Field(max_length=500)]
_Gbps = Annotated[float, Field(gt=0, le=10_000)]
_Price = Annotated[float, Field(ge=0, le=10_000)]
_Date = Annotated[str, Field(pattern=r"^\d{4}-(0[1-9]|1[0-2])(-\d\d)?$")]
_Vcpus = Annotated[int, Field(ge=0, le=MOST_VCPUS)]
_Terms = Annotated[list[_Text], Field(min_length=1)]


class CatalogueEntry(BaseModel):
    """A table of a catalogue file: no field but those that it may have."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class RegionEntry(CatalogueEntry):
    """A ``[[region]]``; one with coordinates joins the baseline graph unless it says no."""

    id: RegionId
    city: _Text = ""
    country: Annotated[str, Field(pattern=r"^([A-Z]{2})?$")] = ""
    continent: Literal["", "NAM", "SAM", "EU", "AF", "AS", "OC"] = ""
    area: _Text = ""
    latitude_deg: Annotated[float, Field(ge=-90, le=90)] | None = None
    longitude_deg: Annotated[float, Field(ge=-180, le=180)] | None = None
    baseline: bool | None = None
    access: Literal["", "restricted", "government", "china", "sovereign"] = ""
    private_network: _Text = ""


class VmTypeEntry(CatalogueEntry):
    """A ``[[vm_type]]``."""

    id: RegionId
    vcpus: Annotated[int, Field(ge=1, le=10_000)]
    egress_gbps: _Gbps
    ingress_gbps: _Gbps
    flow_gbps: _Gbps
    window_mb: Annotated[float, Field(gt=0, le=10_000)]
    price_usd_per_h: _Price
    burstable: bool = False
    source: _Text = ""
    as_of: _Date | None = None
    region_egress_gbps: _Gbps | None = None
    burst_gbps: _Gbps | None = None
    tier1_gbps: _Gbps | None = None


class VmPriceEntry(CatalogueEntry):
    """A ``[[vm_price]]``: what a VM type costs in some regions of its provider."""

    type: RegionId
    usd_per_h: Annotated[dict[_Text, _Price], Field(min_length=1)]
    source: _Text = ""
    as_of: _Date | None = None


def prices_by_region(vm_type: str, usd_per_h: Mapping[str, float]) -> dict[str, float]:
    """Return USD for an hour by the region's id; names stand for the type's provider's."""
    provider = vm_type.partition(":")[0]
    return {name if ":" in name else f"{provider}:{name}": usd for name, usd in usd_per_h.items()}


class DiscountEntry(CatalogueEntry):
    """An entry of ``[discounts]``: shares that a contract takes off."""

    egress: Annotated[float, Field(ge=0, lt=1)] | None = None
    vm: Annotated[float, Field(ge=0, lt=1)] | None = None


class TierEntry(CatalogueEntry):
    """One tier of an ``[[egress]]``."""

    usd_per_gb: _Price | None = None
    usd_per_gib: _Price | None = None
    up_to_gb: Annotated[float, Field(gt=0)] | None = None
    up_to_gib: Annotated[float, Field(gt=0)] | None = None

    def as_gb(self) -> tuple[float, float | None]:
        """Return USD per GB and the end in GB of 10^9 bytes, whatever it is billed by."""
        usd = self.usd_per_gb
        if usd is None:
            usd = (self.usd_per_gib or 0.0) / GB_PER_GIB
        end = self.up_to_gb
        if self.up_to_gib is not None:
            end = self.up_to_gib * GB_PER_GIB
        return usd, end


class EgressEntry(CatalogueEntry):
    """An ``[[egress]]``: a flat ``usd_per_gb`` or ``usd_per_gib``, or ``tiers``."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$", max_length=100)]
    sources: _Terms = Field(alias="from")
    destinations: _Terms = Field(alias="to")
    usd_per_gb: _Price | None = None
    usd_per_gib: _Price | None = None
    tiers: Annotated[list[TierEntry], Field(min_length=1)] | None = None
    source: _Text = ""
    as_of: _Date | None = None
    # The rule whose price an import stated more exactly: a user's own price for it goes before.
    in_place_of: _Text = ""


class VcpuQuotaEntry(CatalogueEntry):
    """A ``[[vcpu_quota]]``."""

    region: Annotated[str, Field(min_length=1, max_length=500)]
    family: Annotated[str, Field(min_length=1, max_length=200)]
    vcpus: _Vcpus
    used_vcpus: _Vcpus = 0
    types: _Terms | None = None
    source: _Text = ""
    as_of: _Date | None = None


PlainName: TypeAdapter[str] = TypeAdapter(
    Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=100)]
)
AliasMembers: TypeAdapter[list[str]] = TypeAdapter(
    Annotated[list[RegionId], Field(min_length=1)], config=ConfigDict(strict=True)
)
Ratio: TypeAdapter[float] = TypeAdapter(
    Annotated[float, Field(gt=0, le=100)], config=ConfigDict(strict=True, allow_inf_nan=False)
)
TypeId: TypeAdapter[str] = TypeAdapter(RegionId, config=ConfigDict(strict=True))
MODELS: dict[str, type[CatalogueEntry]] = {
    "region": RegionEntry,
    "vm_type": VmTypeEntry,
    "vm_price": VmPriceEntry,
    "egress": EgressEntry,
    "vcpu_quota": VcpuQuotaEntry,
}
SOURCED = {"vm_type", "vm_price", "egress", "vcpu_quota"}
PRICES = ("usd_per_gb", "usd_per_gib", "tiers")
KEYS = {
    "region": ("id",),
    "vm_type": ("id",),
    "vm_price": ("type",),
    "egress": ("name",),
    "vcpu_quota": ("region", "family"),
}
TABLES = {
    "aliases": "alias",
    "default_vm_types": "default_vm_types",
    "vm_price_ratios": "vm_price_ratios",
    "discounts": "discount",
}
