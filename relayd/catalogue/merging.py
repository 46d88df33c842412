"""Merges catalogue files into one catalogue, and checks it.

A document holds any of ``[[region]]``, ``[aliases]``, ``[[vm_type]]``, ``[default_vm_types]``,
``[[vm_price]]``, ``[vm_price_ratios]``, ``[[egress]]``, ``[[fee]]``, ``[discounts]``,
``[[vcpu_quota]]`` and ``[[pool]]``.
Imported only when files have changed since they were last checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any, NamedTuple, TypeAlias

from pydantic import ValidationError

from planner.model.catalogue import CONTINENTS, RELATIVE_TERMS, Catalogue
from planner.model.errors import CatalogueError
from relayd.catalogue.entries import (
    KINDS,
    OTHER_ALIAS,
    PRICES,
    TierEntry,
    fields_of,
    prices_by_region,
)
from relayd.catalogue.files import CatalogueFile

_SHOWN = 3
_SINGULAR = {"aliases": "alias", "discounts": "discount"}
Key: TypeAlias = tuple[str, str]
"""Kind and key of an entry."""


class Fault(NamedTuple):
    """One thing that is wrong in a file."""

    file: str
    error: CatalogueError


class Entry(NamedTuple):
    """An entry of a catalogue file: a region, an alias, a VM type, ..."""

    kind: str
    key: str
    value: Any
    file: str

    @property
    def label(self) -> str:
        """Name of the entry in messages."""
        return f"{_SINGULAR.get(self.kind, self.kind)} {self.key}"

    def fault(self, field: str, problem: str, value: object, remedy: str | None) -> Fault:
        """Return a fault of the entry, or of one of its fields."""
        place = ", ".join(part for part in (self.label, field) if part)
        return Fault(self.file, CatalogueError(place, problem, value=value, remedy=remedy))


def merged(files: Sequence[CatalogueFile], digest: str) -> Catalogue:
    """Merge catalogue files, check the result, and return it.

    A later layer (each overlay, then the user's files) extends the earlier ones or overrides their
    entries field by field; within a layer the order of files does not matter, except that of price
    rules. A CatalogueError names file, entry, field, value and remedy of the first few faults; or
    both files that define an entry differently.
    """
    faults: list[Fault] = []
    listed = _layer([f for f in files if f.is_list], faults)
    ours = listed | _layer([f for f in files if f.layer == "built-in" and not f.is_list], faults)
    overlays = [_layer([f], faults) for f in files if f.layer == "overlay"]
    theirs = _layer([f for f in files if f.layer == "user"], faults)
    _raise_if_any(faults)
    entries = {**ours}
    for layer in overlays:
        _lay(layer, entries)
    _make_way(entries, theirs)
    _lay(theirs, entries)
    models: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
    for entry in entries.values():
        try:
            models[entry.kind][entry.key] = _model(entry)
        except ValidationError as error:
            faults += [_fault_of(entry, detail) for detail in error.errors(include_url=False)]
    _raise_if_any(faults)
    for entry in entries.values():
        faults += _missing(entry, models)
    faults += _clashes(entries, models, ours, theirs)
    _raise_if_any(faults)
    return _catalogue(models, theirs, digest)


def _model(entry: Entry) -> Any:
    kind = KINDS[entry.kind]
    if not kind.keys:
        kind.name.validate_python(entry.key)
    is_same = entry.kind == "aliases" and isinstance(entry.value, str)
    return (OTHER_ALIAS if is_same else kind.value).validate_python(entry.value)


# --- layers ---------------------------------------------------------------------------------------


def _layer(files: Sequence[CatalogueFile], faults: list[Fault]) -> dict[Key, Entry]:
    entries: dict[Key, Entry] = {}
    for file in files:
        for entry in _entries(file, faults):
            before = entries.setdefault((entry.kind, entry.key), entry)
            if before is entry or (before.file != file.name and before.value == entry.value):
                continue
            if before.file == file.name:
                faults.append(entry.fault("", "is defined twice", None, "Keep one of them."))
                continue
            differ = f"{before.value!r} and {entry.value!r}"
            if isinstance(before.value, dict) and isinstance(entry.value, dict):
                fields = sorted({*before.value, *entry.value})
                differ = ", ".join(f for f in fields if before.value.get(f) != entry.value.get(f))
            raise CatalogueError(
                f"{before.file} and {file.name}, {entry.label}",
                f"is defined differently in these two files ({differ})",
                remedy="Keep one definition, or make both the same.",
            )
    return entries


def _entries(file: CatalogueFile, faults: list[Fault]) -> Iterator[Entry]:
    def wrong(place: str, problem: str, remedy: str, value: object = None) -> None:
        faults.append(Fault(file.name, CatalogueError(place, problem, value=value, remedy=remedy)))

    for name, content in file.document().items():
        if name == "overlay" and file.layer == "overlay":
            continue  # says where the file is from
        kind = KINDS.get(name)
        if kind is None:
            names = (f"[[{name}]]" if kind.keys else f"[{name}]" for name, kind in KINDS.items())
            remedy = f"A catalogue file may hold {', '.join(names)}."
            wrong(name, "is not a part of a catalogue", remedy)
        elif not kind.keys:
            if isinstance(content, dict):
                yield from (Entry(name, key, value, file.name) for key, value in content.items())
            else:
                wrong(name, "has the wrong shape", f"Write it as a table: `[{name}]`.")
        elif not isinstance(content, list) or not all(isinstance(v, dict) for v in content):
            wrong(name, "has the wrong shape", f"Write each one under its own `[[{name}]]`.")
        else:
            for number, value in enumerate(content, 1):
                keys = {key: value.get(key) for key in kind.keys}
                odd = [key for key in keys if not isinstance(keys[key], str)]
                if not odd:
                    yield Entry(name, " ".join(keys.values()), value, file.name)
                    continue
                found = keys[odd[0]]
                problem = "is missing" if found is None else "must be text"
                remedy = f"Begin every `[[{name}]]` with `{odd[0]} = ...`."
                wrong(f"{name} number {number}, {odd[0]}", problem, remedy, found)


def _lay(layer: Mapping[Key, Entry], entries: dict[Key, Entry]) -> None:
    """Put a layer on top of what has been merged."""
    for key, entry in layer.items():
        if key in entries:
            entries[key] = _overriding(entries[key], entry)
        elif "source" in KINDS[entry.kind].fields and not entry.value.get("source"):
            named = {**entry.value, "source": PurePath(entry.file).name}
            entries[key] = entry._replace(value=named)
        else:
            entries[key] = entry


def _overriding(ours: Entry, theirs: Entry) -> Entry:
    """Override an entry by one of a later layer, field by field; figures keep their sources."""
    if not isinstance(theirs.value, dict) or not isinstance(ours.value, dict):
        return theirs
    kind, value = KINDS[ours.kind], {**ours.value, **theirs.value}
    if isinstance(by_region := theirs.value.get("usd_per_h"), dict):
        value["usd_per_h"] = {**_by_region(ours), **by_region}
    if any(price in theirs.value for price in PRICES):
        for ours_alone in {*PRICES, "unconfirmed"}.difference(theirs.value):
            value.pop(ours_alone, None)
    if "as_of" not in theirs.value:
        value.pop("as_of", None)
    if "source" in kind.fields and "source" not in theirs.value:
        set_here = ", ".join(f for f in theirs.value if f not in {"as_of", *kind.keys})
        before = ours.value.get("source", "")
        if ours.value.get("as_of"):
            before += f", as of {ours.value['as_of']}"
        value["source"] = f"{before}; {set_here} from {PurePath(theirs.file).name}"
    return theirs._replace(value=value)


def _make_way(entries: dict[Key, Entry], theirs: Mapping[Key, Entry]) -> None:
    """Remove the more exact prices of imports for what a user's file states a price of its own."""
    stated = {
        key
        for key, entry in theirs.items()
        if not isinstance(entry.value, dict) or {"price_usd_per_h", *PRICES} & entry.value.keys()
    }
    for (kind, key), entry in list(entries.items()):
        if kind == "egress" and ("egress", entry.value.get("in_place_of")) in stated:
            del entries[kind, key]
        elif kind == "vm_price":
            provider = key.partition(":")[0]
            kept = {
                region: usd
                for region, usd in _by_region(entry).items()
                if ("vm_type", key) not in stated
                and ("vm_price_ratios", f"{provider}:{region.rpartition(':')[2]}") not in stated
            }
            if kept:
                entries[kind, key] = entry._replace(value={**entry.value, "usd_per_h": kept})
            else:
                del entries[kind, key]


def _by_region(entry: Entry) -> Mapping[str, Any]:
    stated = entry.value.get("usd_per_h")
    return stated if isinstance(stated, dict) else {}


# --- what an entry refers to ----------------------------------------------------------------------


def _missing(entry: Entry, models: Mapping[str, Mapping[str, Any]]) -> Iterator[Fault]:
    """Yield the names in an entry that the catalogue lacks."""
    kind, key, model = entry.kind, entry.key, models[entry.kind][entry.key]
    regions = models["region"]
    named: list[tuple[str, str, str]] = []
    if kind == "aliases" and isinstance(model, str):
        if not isinstance(models[kind].get(model), list):
            lists = [name for name, of in models[kind].items() if isinstance(of, list)]
            yield _unknown(entry, "", "alias", model, lists)
    elif kind == "aliases":
        named = [("", "region", member) for member in model]
    elif kind == "default_vm_types":
        named = [("", "vm_type", model)]
    elif kind == "vm_price":
        named = [("", "vm_type", key)]
        named += [
            ("usd_per_h", "region", r) for r in sorted(prices_by_region(key, model.usd_per_h))
        ]
    elif kind == "pool":
        named = [("", "region", model.region), ("", "vm_type", model.vm_type)]
    elif kind == "vcpu_quota":
        yield from _pattern_faults(entry, "region", model.region, regions)
    elif kind in {"egress", "fee"}:
        for field, name in (("at", "at"), ("from", "sources"), ("to", "destinations")):
            for pattern in getattr(model, name, None) or ():
                yield from _pattern_faults(entry, field, pattern, regions)
    elif kind == "discounts":
        known = {name.partition(":")[0] for name in regions}
        if key not in known and key not in regions and key not in models["vm_type"]:
            remedy = "Write a provider, such as aws, or the id of a region or VM type."
            problem = "is no provider, region or VM type of the catalogue"
            yield entry.fault("", problem, None, remedy)
    for field, what, name in named:
        if name not in models[what]:
            yield _unknown(entry, field, what, name, models[what])


def _clashes(
    entries: Mapping[Key, Entry],
    models: Mapping[str, Mapping[str, Any]],
    ours: Mapping[Key, Entry],
    theirs: Mapping[Key, Entry],
) -> Iterator[Fault]:
    """Yield aliases that are called like a region.

    A region of a user's may go by the name of our alias, which keeps it: what the alias stands for
    in rules may not change silently.
    """
    order = list(entries)
    for region in models["region"]:
        alias, region_key = ("aliases", region.partition(":")[2]), ("region", region)
        if alias in entries and not (region_key in theirs and alias in ours):
            pair = sorted((alias, region_key), key=order.index)  # a user's comes after ours
            other, at_fault = (entries[one] for one in pair)
            yield at_fault.fault("", f"has the same name as {other.label}", None, "Rename it.")


def _pattern_faults(
    entry: Entry, field: str, pattern: str, regions: Mapping[str, Any]
) -> Iterator[Fault]:
    providers = {region.partition(":")[0] for region in regions}
    for term in (part.strip() for part in pattern.split("&")):
        kind, colon, value = term.partition(":")
        if term in RELATIVE_TERMS:
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
                f", or one of {', '.join(RELATIVE_TERMS)}." if field == "to" else "."
            )
            yield entry.fault(field, "is not a pattern", pattern, remedy)


def _unknown(
    entry: Entry, field: str, what: str, value: str, known: Mapping[str, Any] | Sequence[str]
) -> Fault:
    close = get_close_matches(value, sorted(known), n=1)
    missing = f"a `[[{what}]]` with this id" if what in KINDS else "it under `[aliases]`"
    remedy = f"Did you mean {close[0]}?" if close else f"Add {missing}."
    article = "an" if what[0] in "aeiou" else "a"
    return entry.fault(field, f"names {article} {what} that is not in the catalogue", value, remedy)


# --- words for faults -----------------------------------------------------------------------------

_WORDS = {
    "float_type": ("must be a number", "Write it without quotes, such as 5.0."),
    "int_type": ("must be a whole number", "Write it without quotes or decimals, such as 8."),
    "string_type": ("must be text", 'Write it in quotes, such as "eu".'),
    "bool_type": ("must be true or false", "Write true or false, without quotes."),
    "list_type": ("must be a list", "Write it in square brackets."),
    "model_type": ("must be a table", "Write it as { usd_per_gb = 0.02 }."),
    "finite_number": ("must be a finite number", "Write a finite figure, or leave it out."),
    "greater_than": ("must be greater than {gt:g}", "Write a figure above {gt:g}."),
    "greater_than_equal": ("must not be below {ge:g}", "Write {ge:g} or more."),
    "less_than": ("must be below {lt:g}", "Write a share: 0.3 is 30 %."),
    "less_than_equal": ("must not be above {le:g}", "Write {le:g} or less; check the unit."),
    "too_short": ("must not be empty", "Name at least one."),
    "string_too_long": ("is too long", "Keep it under {max_length} characters."),
    "literal_error": ("is not a known code", "Use one of {expected}."),
}


def _fault_of(entry: Entry, detail: Any) -> Fault:
    """Return the fault that pydantic found in an entry."""
    kind, context, location = detail["type"], detail.get("ctx", {}), list(detail["loc"])
    field = ", ".join(f"number {p + 1}" if isinstance(p, int) else str(p) for p in location)
    if isinstance(ours := context.get("error"), CatalogueError):
        place = ", ".join(part for part in (field, ours.field) if part)
        return entry.fault(place, ours.problem, ours.value, ours.remedy)
    if kind == "missing":
        return entry.fault(field, "is missing", None, f"Add `{location[-1]} = ...`.")
    if kind == "extra_forbidden":
        fields = fields_of(TierEntry) if "tiers" in location else KINDS[entry.kind].fields
        remedy = f"The fields are {', '.join(fields)}."
        return entry.fault(field, "is not a known field", None, remedy)
    problem, remedy = _WORDS.get(kind, ("is not valid", f"{detail['msg']}."))
    if kind == "less_than_equal" and field.endswith("_gbps"):
        remedy = "Throughput is in Gbit/s here: 1 Gbit/s is 1000 Mbit/s."
    if kind in _WORDS:
        problem, remedy = problem.format(**context), remedy.format(**context)
    return entry.fault(field, problem, detail["input"], remedy)


def _raise_if_any(faults: Sequence[Fault]) -> None:
    """Raise a CatalogueError that names the first few faults, if there are any."""
    if not faults:
        return
    if len(faults) == 1:
        raise faults[0].error.within(f"{faults[0].file},")
    told = [f"({number}) {error}" for number, (_, error) in enumerate(faults[:_SHOWN], 1)]
    rest = f" And {len(faults) - _SHOWN} more." if len(faults) > _SHOWN else ""
    files = ", ".join(dict.fromkeys(fault.file for fault in faults))
    raise CatalogueError(files, f"has {len(faults)} faults", remedy=" ".join(told) + rest)


# --- the result -----------------------------------------------------------------------------------


def _catalogue(
    models: Mapping[str, dict[str, Any]], theirs: Mapping[Key, Entry], digest: str
) -> Catalogue:
    aliases = models["aliases"]
    vm_types = [one.vm_type() for one in models["vm_type"].values()]
    vm_types.sort(key=lambda vm: (vm.price_usd_per_h, vm.id))  # the cheapest first
    discounts = {
        subject: of.model_dump(exclude_none=True) for subject, of in models["discounts"].items()
    }
    if discounts:
        # Prices that a user's files state are agreed ones, which discounts don't lower.
        agreed: list[tuple[str, str]] = []
        for (kind, key), entry in theirs.items():
            if kind == "egress" and any(price in entry.value for price in PRICES):
                agreed.append((f"rule {key}", "egress"))
            elif kind == "vm_type" and "price_usd_per_h" in entry.value:
                agreed.append((key, "vm"))
            elif kind == "vm_price":
                regions = prices_by_region(key, _by_region(entry))
                agreed += [(f"{key} in {region}", "vm") for region in regions]
        for subject, of in agreed:
            discounts.setdefault(subject, {}).setdefault(of, 0.0)
    return Catalogue(
        regions={key: one.region() for key, one in models["region"].items()},
        aliases={
            key: tuple(aliases[of] if isinstance(of, str) else of) for key, of in aliases.items()
        },
        vm_types={vm.id: vm for vm in vm_types},
        default_vm_types=models["default_vm_types"],
        egress_prices=tuple(one.price() for one in models["egress"].values()),
        fees=tuple(one.fee() for one in models["fee"].values()),
        digest=digest,
        vm_price_ratios=models["vm_price_ratios"],
        vm_prices={
            key: prices_by_region(key, one.usd_per_h) for key, one in models["vm_price"].items()
        },
        discounts=discounts,
        vcpu_quotas=tuple(one.quota() for one in models["vcpu_quota"].values()),
        pools={one.region: one.pool() for one in models["pool"].values()},
    )
