"""Checks that the entries of a catalogue refer only to what exists."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from planner.model.catalogue import CONTINENTS
from relayd.catalogue.entries import MODELS, prices_by_region
from relayd.catalogue.faults import Entry, Fault


def faults_between(
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
            for region in sorted(prices_by_region(key, model.usd_per_h).keys() - regions):
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
    missing = f"a `[[{what}]]` with this id" if what in MODELS else "it under `[aliases]`"
    remedy = f"Did you mean {close[0]}?" if close else f"Add {missing}."
    article = "an" if what[0] in "aeiou" else "a"
    problem = f"names {article} {what} that is not in the catalogue"
    return Fault(entry.file, entry.label, field, problem, value, remedy)
