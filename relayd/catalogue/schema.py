"""Merges catalogue files into one catalogue, and checks it.

A document holds any of ``[[region]]``, ``[aliases]``, ``[[vm_type]]``, ``[default_vm_types]``,
``[[vm_price]]``, ``[vm_price_ratios]``, ``[[egress]]``, ``[discounts]`` and ``[[vcpu_quota]]``.
Imported only when files have changed since they were last checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import PurePath
from typing import Any

from pydantic import TypeAdapter, ValidationError

from planner.model.baseline.backbone import HUBS_OF_AREA
from planner.model.catalogue import VmType
from planner.model.errors import CatalogueError
from planner.model.quotas.vcpus import family_key
from relayd.catalogue.entries import (
    KEYS,
    MODELS,
    PRICES,
    SOURCED,
    TABLES,
    AliasMembers,
    CatalogueEntry,
    DiscountEntry,
    EgressEntry,
    PlainName,
    Ratio,
    RegionEntry,
    TierEntry,
    TypeId,
    prices_by_region,
)
from relayd.catalogue.faults import CatalogueFile, Entry, Fault, as_fault, raise_if_any
from relayd.catalogue.references import faults_between

_RESERVED_PROVIDERS = {"provider", "country", "continent", "city", "set"}


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
    faults.extend(faults_between(merged, models, ours, theirs))
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
        if not isinstance(entry.value, dict) or {"price_usd_per_h", *PRICES} & entry.value.keys()
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
        if kind in TABLES:
            if isinstance(content, dict):
                yield from (Entry(TABLES[kind], k, v, file.name) for k, v in content.items())
                continue
            wrong = f"Write it as a table: `[{kind}]`."
        elif kind in MODELS:
            if isinstance(content, list) and all(isinstance(v, dict) for v in content):
                for number, value in enumerate(content, 1):
                    keys = [value.get(name) for name in KEYS[kind]]
                    if all(isinstance(key, str) for key in keys):
                        yield Entry(kind, " ".join(keys), value, file.name)
                        continue
                    name, key = next(
                        (name, key)
                        for name, key in zip(KEYS[kind], keys, strict=True)
                        if not isinstance(key, str)
                    )
                    problem = "must be text" if key is not None else "is missing"
                    place = f"{kind} number {number}"
                    remedy = f"Begin every `[[{kind}]]` with `{name} = ...`."
                    faults.append(Fault(file.name, place, name, problem, key, remedy))
                continue
            wrong = f"Write each one under its own `[[{kind}]]`."
        else:
            names = [*(f"[[{name}]]" for name in MODELS), *(f"[{name}]" for name in TABLES)]
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
    if stated := [price for price in PRICES if price in theirs.value]:
        for price in set(PRICES).difference(stated):
            value.pop(price, None)
    if "as_of" not in theirs.value:
        value.pop("as_of", None)
    if ours.kind in SOURCED and "source" not in theirs.value:
        set_here = ", ".join(f for f in theirs.value if f not in {"as_of", *KEYS[ours.kind]})
        value["source"] = f"{_dated(ours.value)}; {set_here} from {PurePath(theirs.file).name}"
    return theirs._replace(value=value)


def _by_region(entry: Entry) -> Mapping[str, Any]:
    stated = entry.value.get("usd_per_h")
    return stated if isinstance(stated, dict) else {}


def _sourced(entry: Entry) -> Entry:
    if entry.kind in SOURCED and not entry.value.get("source"):
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
        elif entry.kind in MODELS:
            models[key] = MODELS[entry.kind].model_validate(entry.value)
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
        TypeId.validate_python(entry.key)
        return Ratio.validate_python(entry.value)
    PlainName.validate_python(entry.key)
    adapter: TypeAdapter[Any] = AliasMembers if entry.kind == "alias" else TypeId
    if entry.kind == "alias" and isinstance(entry.value, str):
        adapter = PlainName  # of another alias that means the same
    return adapter.validate_python(entry.value)


def _fields(entry: Entry, location: Sequence[object]) -> list[str]:
    models: dict[str, type[CatalogueEntry]] = {**MODELS, "discount": DiscountEntry}
    model = TierEntry if "tiers" in location else models.get(entry.kind, CatalogueEntry)
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

    stated = [price for price in PRICES if getattr(egress, price) is not None]
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
            vm_prices[key] = prices_by_region(key, model.usd_per_h)
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
    vm_types.sort(key=lambda vm: (vm.price_usd_per_h, vm.id))  # the cheapest first
    result["vm_types"] = [list(astuple(vm)) for vm in vm_types]
    result["vm_prices"] = vm_prices
    if result["discounts"]:
        for subject, of in _agreed(theirs):
            result["discounts"].setdefault(subject, {}).setdefault(of, 0.0)
    return result


def _agreed(theirs: Mapping[tuple[str, str], Entry]) -> Iterator[tuple[str, str]]:
    """Yield the prices that a user states: agreed ones, which discounts don't lower.

    Parameters
    ----------
    theirs : mapping
        As in the user's files: an entry may state only what it changes.
    """
    for (kind, key), entry in theirs.items():
        if kind == "egress" and any(price in entry.value for price in PRICES):
            yield f"rule {key}", "egress"
        elif kind == "vm_type" and "price_usd_per_h" in entry.value:
            yield key, "vm"
        elif kind == "vm_price":
            for region in prices_by_region(key, _by_region(entry)):
                yield f"{key} in {region}", "vm"
