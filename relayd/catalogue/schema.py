"""The schema of catalogue files, and the checks across their entries.

A document holds any of ``[[region]]``, ``[aliases]``, ``[[vm_type]]``, ``[default_vm_types]``,
``[[vm_price]]``, ``[vm_price_ratios]``, ``[[egress]]``, ``[discounts]`` and ``[[vcpu_quota]]``.
Imported only when files have changed since they were last checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import PurePath
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from planner.model.backbone import HUBS_OF_AREA
from planner.model.catalogue import CONTINENTS, VmType
from planner.model.errors import CatalogueError
from planner.model.quotas.vcpus import MOST_VCPUS, family_key
from planner.model.units import GB_PER_GIB
from relayd.catalogue.faults import CatalogueFile, Entry, Fault, as_fault, raise_if_any
from relayd.catalogue.vm_table import lines_of, price_lines_of

_RESERVED_PROVIDERS = {"provider", "country", "continent", "city", "set"}

RegionId: TypeAlias = Annotated[
    str, Field(pattern=r"^[a-z][a-z0-9-]*:[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)
]
_Text = Annotated[str, Field(max_length=500)]
_Gbps = Annotated[float, Field(gt=0, le=10_000)]
_Price = Annotated[float, Field(ge=0, le=10_000)]
_Date = Annotated[str, Field(pattern=r"^\d{4}-(0[1-9]|1[0-2])(-\d\d)?$")]
_Vcpus = Annotated[int, Field(ge=0, le=MOST_VCPUS)]
_Terms = Annotated[list[_Text], Field(min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class RegionEntry(_Table):
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


class VmTypeEntry(_Table):
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


class VmPriceEntry(_Table):
    """A ``[[vm_price]]``: what a VM type costs in some regions of its provider."""

    type: RegionId
    usd_per_h: Annotated[dict[_Text, _Price], Field(min_length=1)]
    source: _Text = ""
    as_of: _Date | None = None

    def by_region(self) -> dict[str, float]:
        """Return USD for an hour by the region's id; names stand for the type's provider's."""
        provider = self.type.partition(":")[0]
        return {
            name if ":" in name else f"{provider}:{name}": usd
            for name, usd in self.usd_per_h.items()
        }


class DiscountEntry(_Table):
    """An entry of ``[discounts]``: shares that a contract takes off."""

    egress: Annotated[float, Field(ge=0, lt=1)] | None = None
    vm: Annotated[float, Field(ge=0, lt=1)] | None = None


class TierEntry(_Table):
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


class EgressEntry(_Table):
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


class VcpuQuotaEntry(_Table):
    """A ``[[vcpu_quota]]``."""

    region: Annotated[str, Field(min_length=1, max_length=500)]
    family: Annotated[str, Field(min_length=1, max_length=200)]
    vcpus: _Vcpus
    used_vcpus: _Vcpus = 0
    types: _Terms | None = None
    source: _Text = ""
    as_of: _Date | None = None


_PlainName: TypeAdapter[str] = TypeAdapter(
    Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=100)]
)
_AliasMembers: TypeAdapter[list[str]] = TypeAdapter(
    Annotated[list[RegionId], Field(min_length=1)], config=ConfigDict(strict=True)
)
_Ratio: TypeAdapter[float] = TypeAdapter(
    Annotated[float, Field(gt=0, le=100)], config=ConfigDict(strict=True, allow_inf_nan=False)
)
_TypeId: TypeAdapter[str] = TypeAdapter(RegionId, config=ConfigDict(strict=True))
_MODELS: dict[str, type[_Table]] = {
    "region": RegionEntry,
    "vm_type": VmTypeEntry,
    "vm_price": VmPriceEntry,
    "egress": EgressEntry,
    "vcpu_quota": VcpuQuotaEntry,
}
_SOURCED = {"vm_type", "vm_price", "egress", "vcpu_quota"}
_PRICES = ("usd_per_gb", "usd_per_gib", "tiers")
_KEYS = {
    "region": ("id",),
    "vm_type": ("id",),
    "vm_price": ("type",),
    "egress": ("name",),
    "vcpu_quota": ("region", "family"),
}
_TABLES = {
    "aliases": "alias",
    "default_vm_types": "default_vm_types",
    "vm_price_ratios": "vm_price_ratios",
    "discounts": "discount",
}


def check(files: Sequence[CatalogueFile]) -> dict[str, Any]:
    """Merge catalogue files, check the result, and return it as plain JSON values.

    A later layer (each overlay, then the user's files) extends the earlier ones or overrides their
    entries field by field; within a layer the order of files does not matter, except that of price
    rules.

    Raises
    ------
    CatalogueError
        Names file, entry, field, value and remedy of the first few faults; or both files that
        define an entry differently.
    """
    faults: list[Fault] = []
    listed = _layer([f for f in files if f.listed], faults)
    ours = listed | _layer([f for f in files if f.layer == "built-in" and not f.listed], faults)
    overlays = [_layer([f], faults) for f in files if f.layer == "overlay"]
    theirs = _layer([f for f in files if f.layer == "user"], faults)
    raise_if_any(faults)
    merged = {**ours}
    for layer in overlays:
        _lay(layer, merged)
    _make_way(merged, theirs)
    _lay(theirs, merged)
    models: dict[tuple[str, str], Any] = {}
    for entry in merged.values():
        faults.extend(_faults_inside(entry, models))
    raise_if_any(faults)
    faults.extend(_faults_between(merged, models, ours, theirs))
    raise_if_any(faults)
    return _plain(merged, models, theirs)


def _lay(layer: Mapping[tuple[str, str], Entry], merged: dict[tuple[str, str], Entry]) -> None:
    """Put a layer on top of what has been merged."""
    for key, entry in layer.items():
        merged[key] = _overriding(merged[key], entry) if key in merged else _sourced(entry)


def _make_way(
    merged: dict[tuple[str, str], Entry], theirs: Mapping[tuple[str, str], Entry]
) -> None:
    """Remove the more exact prices of imports for what a user's file states a price of its own."""
    stated = {
        (kind, key)
        for (kind, key), entry in theirs.items()
        if not isinstance(entry.value, dict) or {"price_usd_per_h", *_PRICES} & entry.value.keys()
    }
    for (kind, key), entry in list(merged.items()):
        if kind == "egress" and ("egress", entry.value.get("in_place_of")) in stated:
            del merged[kind, key]
        elif kind == "vm_price":
            provider = key.partition(":")[0]
            kept = {
                region: usd
                for region, usd in _by_region(entry).items()
                if ("vm_type", key) not in stated
                and ("vm_price_ratios", f"{provider}:{region.rpartition(':')[2]}") not in stated
            }
            if kept:
                merged[kind, key] = entry._replace(value={**entry.value, "usd_per_h": kept})
            else:
                del merged[kind, key]


# --- reading files into entries ---------------------------------------------------------------


def _layer(files: Sequence[CatalogueFile], faults: list[Fault]) -> dict[tuple[str, str], Entry]:
    entries: dict[tuple[str, str], Entry] = {}
    for file in files:
        for entry in _entries(file, faults):
            before = entries.setdefault((entry.kind, entry.key), entry)
            if before is entry or (before.file != file.name and before.value == entry.value):
                continue
            if before.file == file.name:
                faults.append(
                    Fault(file.name, entry.label, "", "is defined twice", None, "Keep one of them.")
                )
                continue
            raise CatalogueError(
                f"{before.file} and {file.name}, {entry.label}",
                f"is defined differently in these two files{_difference(before, entry)}",
                remedy="Keep one definition, or make both the same.",
            )
    return entries


def _entries(file: CatalogueFile, faults: list[Fault]) -> Iterator[Entry]:
    for kind, content in file.document.items():
        if kind == "overlay" and file.layer == "overlay":
            continue  # says where the file is from
        if kind in _TABLES:
            if isinstance(content, dict):
                yield from (Entry(_TABLES[kind], k, v, file.name) for k, v in content.items())
                continue
            wrong = f"Write it as a table: `[{kind}]`."
        elif kind in _MODELS:
            if isinstance(content, list) and all(isinstance(v, dict) for v in content):
                for number, value in enumerate(content, 1):
                    keys = [value.get(name) for name in _KEYS[kind]]
                    if all(isinstance(key, str) for key in keys):
                        yield Entry(kind, " ".join(keys), value, file.name)
                        continue
                    name, key = next(
                        (name, key)
                        for name, key in zip(_KEYS[kind], keys, strict=True)
                        if not isinstance(key, str)
                    )
                    problem = "must be text" if key is not None else "is missing"
                    place = f"{kind} number {number}"
                    remedy = f"Begin every `[[{kind}]]` with `{name} = ...`."
                    faults.append(Fault(file.name, place, name, problem, key, remedy))
                continue
            wrong = f"Write each one under its own `[[{kind}]]`."
        else:
            names = [*(f"[[{name}]]" for name in _MODELS), *(f"[{name}]" for name in _TABLES)]
            remedy = f"A catalogue file may hold {', '.join(names)}."
            faults.append(Fault(file.name, kind, "", "is not a part of a catalogue", None, remedy))
            continue
        faults.append(Fault(file.name, kind, "", "has the wrong shape", None, wrong))


def _difference(one: Entry, other: Entry) -> str:
    if not isinstance(one.value, dict) or not isinstance(other.value, dict):
        return f" ({one.value!r} and {other.value!r})"
    fields = sorted({*one.value, *other.value})
    differing = [f for f in fields if one.value.get(f) != other.value.get(f)]
    return f" ({', '.join(differing)})"


def _overriding(ours: Entry, theirs: Entry) -> Entry:
    """Override an entry by one of a later layer, field by field; figures keep their sources."""
    if not isinstance(theirs.value, dict) or not isinstance(ours.value, dict):
        return theirs
    value = {**ours.value, **theirs.value}
    if isinstance(by_region := theirs.value.get("usd_per_h"), dict):
        value["usd_per_h"] = {**_by_region(ours), **by_region}
    if stated := [price for price in _PRICES if price in theirs.value]:
        for price in set(_PRICES).difference(stated):
            value.pop(price, None)
    if "as_of" not in theirs.value:
        value.pop("as_of", None)
    if ours.kind in _SOURCED and "source" not in theirs.value:
        set_here = ", ".join(f for f in theirs.value if f not in {"as_of", *_KEYS[ours.kind]})
        value["source"] = f"{_dated(ours.value)}; {set_here} from {PurePath(theirs.file).name}"
    return theirs._replace(value=value)


def _by_region(entry: Entry) -> Mapping[str, Any]:
    stated = entry.value.get("usd_per_h")
    return stated if isinstance(stated, dict) else {}


def _sourced(entry: Entry) -> Entry:
    if entry.kind in _SOURCED and not entry.value.get("source"):
        return entry._replace(value={**entry.value, "source": PurePath(entry.file).name})
    return entry


def _dated(value: Mapping[str, object]) -> str:
    as_of = f", as of {value['as_of']}" if value.get("as_of") else ""
    return f"{value.get('source', '')}{as_of}"


# --- faults -----------------------------------------------------------------------------------


def _faults_inside(entry: Entry, models: dict[tuple[str, str], Any]) -> Iterator[Fault]:
    """Check one entry by itself, and add it to `models` if it is valid."""
    key = entry.kind, entry.key
    try:
        if entry.kind == "discount":
            models[key] = DiscountEntry.model_validate(entry.value)
        elif entry.kind in _MODELS:
            models[key] = _MODELS[entry.kind].model_validate(entry.value)
        else:
            models[key] = _plain_value(entry)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            yield as_fault(entry, detail, _fields(entry, detail["loc"]))
        return
    if entry.kind == "egress":
        yield from _tier_faults(entry, models[key])
    elif entry.kind == "region":
        yield from _region_faults(entry, models[key])
    elif (
        entry.kind == "vcpu_quota"
        and not models[key].types
        and not family_key(entry.value["family"])
    ):
        problem = "is not one whose VM types relayd knows"
        remedy = 'Say which count: `types = ["m5.*", "c5.*"]`.'
        family = entry.value["family"]
        yield Fault(entry.file, entry.label, "family", problem, family, remedy)


def _plain_value(entry: Entry) -> Any:
    """Check an entry of a table of plain values, and return its value."""
    if entry.kind == "vm_price_ratios":
        _TypeId.validate_python(entry.key)
        return _Ratio.validate_python(entry.value)
    _PlainName.validate_python(entry.key)
    adapter: TypeAdapter[Any] = _AliasMembers if entry.kind == "alias" else _TypeId
    if entry.kind == "alias" and isinstance(entry.value, str):
        adapter = _PlainName  # of another alias that means the same
    return adapter.validate_python(entry.value)


def _fields(entry: Entry, location: Sequence[object]) -> list[str]:
    models: dict[str, type[_Table]] = {**_MODELS, "discount": DiscountEntry}
    model = TierEntry if "tiers" in location else models.get(entry.kind, _Table)
    return [field.alias or name for name, field in model.model_fields.items()]


def _region_faults(entry: Entry, region: RegionEntry) -> Iterator[Fault]:
    def fault(field: str, problem: str, value: object, remedy: str) -> Fault:
        return Fault(entry.file, entry.label, field, problem, value, remedy)

    if region.id.partition(":")[0] in _RESERVED_PROVIDERS:
        yield fault("id", "has a provider that is a word of rules", region.id, "Rename it.")
    if region.area and region.area not in HUBS_OF_AREA:
        areas = ", ".join(HUBS_OF_AREA)
        yield fault("area", "is not known", region.area, f"Use one of {areas}, or leave it out.")
    if (region.latitude_deg is None) != (region.longitude_deg is None):
        missing = "latitude_deg" if region.latitude_deg is None else "longitude_deg"
        yield fault(missing, "is missing", None, "Give both coordinates or neither.")
    elif region.baseline and region.latitude_deg is None:
        remedy = "Give latitude_deg and longitude_deg: the baseline is computed from them."
        yield fault("baseline", "needs coordinates", True, remedy)


def _tier_faults(entry: Entry, egress: EgressEntry) -> Iterator[Fault]:
    def fault(problem: str, value: object, remedy: str) -> Fault:
        return Fault(entry.file, entry.label, "tiers", problem, value, remedy)

    stated = [price for price in _PRICES if getattr(egress, price) is not None]
    if len(stated) != 1:
        problem = f"and {stated[0]} are both given" if stated else "and usd_per_gb are missing"
        if "tiers" not in stated and stated:
            problem = "are missing, and usd_per_gb and usd_per_gib are both given"
        yield fault(problem, None, "Give a flat `usd_per_gb`, or `tiers`.")
        return
    tiers = egress.tiers or []
    if any((tier.usd_per_gb is None) == (tier.usd_per_gib is None) for tier in tiers):
        yield fault("need one price each", None, "Give usd_per_gb in each, or usd_per_gib.")
        return
    if any(tier.up_to_gb is not None and tier.up_to_gib is not None for tier in tiers):
        yield fault("have two ends", None, "Give up_to_gb, or up_to_gib.")
        return
    ends = [tier.as_gb()[1] for tier in tiers]
    if ends and ends[-1] is not None:
        yield fault(
            "must end with one that has no end", ends[-1], "Leave up_to_gb out of the last."
        )
    bounded = [end for end in ends[:-1] if end is not None]
    if len(bounded) != len(ends[:-1]):
        yield fault("may have no end only in the last", None, "Give up_to_gb in all the others.")
    elif sorted(set(bounded)) != bounded:
        yield fault("must ascend in up_to_gb", bounded, "Sort them from small to large volumes.")


def _faults_between(
    merged: Mapping[tuple[str, str], Entry],
    models: Mapping[tuple[str, str], Any],
    ours: Collection[tuple[str, str]],
    theirs: Collection[tuple[str, str]],
) -> Iterator[Fault]:
    """Check that entries refer only to what exists."""
    regions = {key for kind, key in models if kind == "region"}
    vm_types = {key for kind, key in models if kind == "vm_type"}
    bare_names = {region.partition(":")[2]: region for region in sorted(regions)}
    for (kind, key), entry in merged.items():
        model = models[kind, key]
        if kind == "alias":
            region = bare_names.get(key)
            # A region of a user's may go by the name of our alias, which keeps it: what the alias
            # stands for in rules may not change silently.
            if region is not None and not (("region", region) in theirs and (kind, key) in ours):
                pair = sorted([(kind, key), ("region", region)], key=list(merged).index)
                other, at_fault = merged[pair[0]], merged[pair[1]]  # a user's comes after ours
                problem = f"has the same name as {other.label}"
                yield Fault(at_fault.file, at_fault.label, "", problem, None, "Rename it.")
            if isinstance(model, str):
                lists = {
                    name for (k, name), m in models.items() if k == kind and m.__class__ is list
                }
                if model not in lists:
                    yield _unknown(entry, "", "alias", model, lists)
                continue
            for member in model:
                if member not in regions:
                    yield _unknown(entry, "", "region", member, regions)
        elif kind == "default_vm_types":
            if model not in vm_types:
                yield _unknown(entry, "", "vm_type", model, vm_types)
        elif kind == "vm_price":
            if key not in vm_types:
                yield _unknown(entry, "", "vm_type", key, vm_types)
            for region in model.by_region().keys() - regions:
                yield _unknown(entry, "usd_per_h", "region", region, regions)
        elif kind == "discount":
            known = {name.partition(":")[0] for name in regions} | regions | vm_types
            if key not in known:
                remedy = "Write a provider, such as aws, or the id of a region or VM type."
                problem = "is no provider, region or VM type of the catalogue"
                yield Fault(entry.file, entry.label, "", problem, None, remedy)
        elif kind == "egress":
            for pattern in model.sources:
                yield from _pattern_faults(entry, "from", pattern, regions)
            for pattern in model.destinations:
                yield from _pattern_faults(entry, "to", pattern, regions)
        elif kind == "vcpu_quota":
            yield from _pattern_faults(entry, "region", model.region, regions)


def _pattern_faults(entry: Entry, field: str, pattern: str, regions: set[str]) -> Iterator[Fault]:
    providers = {region.partition(":")[0] for region in regions}
    for term in (part.strip() for part in pattern.split("&")):
        kind, colon, value = term.partition(":")
        if term in {"same-provider", "other-provider", "same-continent"}:
            sound = field == "to"
        elif kind == "continent":
            sound = value in CONTINENTS
        elif kind == "country":
            sound = len(value) == 2 and value.isascii() and value.isupper()
        elif "*" in term:
            sound = True
        else:
            sound = bool(colon and kind and value)
            # A price for a provider that is measured without being listed is fine; a region
            # that is missing among listed ones of its provider is most likely misspelled.
            if sound and kind in providers and term not in regions:
                yield _unknown(entry, field, "region", term, regions)
        if not sound:
            remedy = "Write a region id, a pattern such as `aws:eu-*`, continent:EU, country:DE" + (
                ", same-provider, other-provider or same-continent." if field == "to" else "."
            )
            yield Fault(entry.file, entry.label, field, "is not a pattern", pattern, remedy)


def _unknown(entry: Entry, field: str, what: str, value: str, known: set[str]) -> Fault:
    close = get_close_matches(value, sorted(known), n=1)
    missing = f"a `[[{what}]]` with this id" if what in _MODELS else "it under `[aliases]`"
    remedy = f"Did you mean {close[0]}?" if close else f"Add {missing}."
    article = "an" if what[0] in "aeiou" else "a"
    problem = f"names {article} {what} that is not in the catalogue"
    return Fault(entry.file, entry.label, field, problem, value, remedy)


# --- the result -------------------------------------------------------------------------------


def _plain(
    merged: Mapping[tuple[str, str], Entry],
    models: Mapping[tuple[str, str], Any],
    theirs: Mapping[tuple[str, str], Entry],
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "regions": [],
        "aliases": {},
        "vm_price_ratios": {},
        "default_vm_types": {},
        "egress": [],
        "discounts": {},
        "vcpu_quotas": [],
    }
    vm_types: list[VmType] = []
    vm_prices: dict[str, dict[str, float]] = {}
    for (kind, key), entry in merged.items():
        model = models[kind, key]
        if kind == "alias":
            result["aliases"][key] = models[kind, model] if isinstance(model, str) else model
        elif kind == "default_vm_types":
            result["default_vm_types"][key] = model
        elif kind == "vm_price_ratios":
            result["vm_price_ratios"][key] = model
        elif kind == "region":
            row = model.model_dump()
            if row["baseline"] is None:
                row["baseline"] = model.latitude_deg is not None
            result["regions"].append(list(row.values()))
        elif kind == "vm_type":
            row = model.model_dump(exclude={"as_of"})
            vm_types.append(VmType(**{**row, "source": _dated(entry.value)}))
        elif kind == "vm_price":
            vm_prices[key] = model.by_region()
        elif kind == "discount":
            result["discounts"][key] = model.model_dump(exclude_none=True)
        elif kind == "vcpu_quota":
            row = model.model_dump(exclude={"as_of"})
            types = row["types"] or []
            result["vcpu_quotas"].append(
                [*{**row, "types": types, "source": _dated(entry.value)}.values()]
            )
        else:
            flat = TierEntry(usd_per_gb=model.usd_per_gb, usd_per_gib=model.usd_per_gib)
            tiers = model.tiers or [flat]
            result["egress"].append(
                [
                    model.name,
                    model.sources,
                    model.destinations,
                    [tier.as_gb() for tier in tiers],
                    _dated(entry.value),
                    entry.value.get("as_of", ""),
                ]
            )
    result["vm_types"] = lines_of(vm_types)
    result["vm_prices"] = price_lines_of(vm_prices)
    if result["discounts"]:
        for subject, of in _agreed(theirs):
            result["discounts"].setdefault(subject, {}).setdefault(of, 0.0)
    return result


def _agreed(theirs: Mapping[tuple[str, str], Entry]) -> Iterator[tuple[str, str]]:
    """Yield the prices that a user states: agreed ones, which discounts don't lower."""
    for (kind, key), entry in theirs.items():
        if kind == "egress" and any(price in entry.value for price in _PRICES):
            yield f"rule {key}", "egress"
        elif kind == "vm_type" and "price_usd_per_h" in entry.value:
            yield key, "vm"
        elif kind == "vm_price":
            for region in VmPriceEntry.model_validate(entry.value).by_region():
                yield f"{key} in {region}", "vm"
