"""``relayd data catalogue show``: what is in force, and where every figure is from."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from planner.model.aliases import resolve_many
from planner.model.catalogue import Catalogue
from planner.model.errors import DataError, InputError
from relayd.catalogue.entries import prices_by_region
from relayd.catalogue.files import CatalogueFile, files_in_force
from relayd.catalogue.loading import load_catalogue
from relayd.cli import text
from relayd.cli.output import respond
from relayd.settings import load_settings

# Lists of a file, with what names an entry, and what entries are.
_LISTS = {
    "region": ("id", "regions"),
    "vm_type": ("id", "VM types"),
    "vm_price": ("type", "VM prices"),
    "egress": ("name", "egress prices"),
    "vcpu_quota": ("region", "vCPU quotas"),
    "pool": ("region", "pools of VMs"),
}
_TABLES = ("aliases", "vm_price_ratios", "default_vm_types", "discounts")
_LAYERS = {"built-in": "relayd's own", "overlay": "imported", "user": "your own"}


class _Statement(NamedTuple):
    """One field of an entry, as one file states it."""

    entry: str
    field: str
    value: object
    file: str
    source: str
    as_of: str


def run(options: argparse.Namespace) -> int:
    """Show the layers of the catalogue, or the figures of what is named."""
    files = [*load_settings().catalogues, *map(Path, options.catalogue)]
    catalogue = load_catalogue(files)  # says what is wrong, if anything is
    layers = files_in_force(files)
    if options.names:
        return _figures(options, catalogue, layers)
    rows = [_layer(file) for file in layers]
    shown = text.page().table_of(
        rows,
        "file | layer | holds | as of=dates",
        left=True,
        file=lambda row: PurePath(row["file"]).name,
        layer=lambda row: _LAYERS[row["layer"]],
        holds=lambda row: ", ".join(f"{count:,} {what}" for what, count in row["entries"].items()),
        dates=lambda row: " to ".join(dict.fromkeys(filter(None, (row["oldest"], row["newest"])))),
    )
    told = (
        "Later files go before earlier ones. `relayd data catalogue show NAME` has the source of "
        "each figure of a region, VM type or price; `relayd data catalogue undo` takes the newest "
        "import back."
    )
    document = {"files": rows, "digest": catalogue.digest}
    return respond(options, document, f"{shown}\n{text.page().filled(told)}")


def _layer(file: CatalogueFile) -> dict[str, Any]:
    document = file.document()
    counts: Counter[str] = Counter()
    dates = [document.get("overlay", {}).get("as_of", "")]
    for kind, (_, entries) in _LISTS.items():
        for entry in document.get(kind, ()):
            counts[entries] += len(entry.get("usd_per_h", {})) if kind == "vm_price" else 1
            dates.append(str(entry.get("as_of", "")))
    counts.update({kind.replace("_", " "): len(document.get(kind, ())) for kind in _TABLES})
    dates = list(filter(None, dates))
    return {
        "file": file.name,
        "layer": file.layer,
        "entries": dict(+counts),
        "oldest": min(dates, default=""),
        "newest": max(dates, default=""),
    }


def _figures(
    options: argparse.Namespace, catalogue: Catalogue, layers: Sequence[CatalogueFile]
) -> int:
    found: list[_Statement] = []
    for name in (one for named in options.names for one in _meant(named, catalogue)):
        of_name = list(_of(name, layers))
        if not of_name:
            remedy = "`relayd data regions` and `relayd data vm-types` list them."
            problem = "is no region, VM type or egress price of the catalogue"
            raise InputError("NAME", problem, value=name, remedy=remedy)
        found += of_name
        found += _computed(name, catalogue)
    shown = text.page().table_of(
        found,
        "entry | field | value | as of=as_of | file | source",
        left=True,
        value=lambda figure: _shown(figure.value),
        file=lambda figure: PurePath(figure.file).name,
    )
    return respond(options, {"figures": [figure._asdict() for figure in found]}, shown)


def _meant(name: str, catalogue: Catalogue) -> list[str]:
    """Return the ids that a name stands for; the name itself if it is not found to be one."""
    if name in catalogue.regions or name in catalogue.vm_types:
        return [name]
    if types := [one for one in catalogue.vm_types if one.partition(":")[2] == name]:
        return types
    try:
        known = list(catalogue.regions)
        return sorted(resolve_many([name], catalogue, field="NAME", known=known)) or [name]
    except InputError:
        return [name]


def _of(name: str, layers: Sequence[CatalogueFile]) -> Iterator[_Statement]:
    """Yield what each file says of a name, the lowest layer first."""
    for file in layers:
        document = file.document()
        head = document.get("overlay", {})
        stated = {field: head[field] for field in ("source", "as_of") if head.get(field)}
        for kind, (key, _) in _LISTS.items():
            for entry in document.get(kind, ()):
                entry = {**stated, **entry}
                if entry[key] == name:
                    yield from _of_entry(kind, key, entry, file.name)
                elif kind == "vm_price":
                    by_region = prices_by_region(entry["type"], entry.get("usd_per_h", {}))
                    if name in by_region:
                        one = {**entry, "usd_per_h": {name: by_region[name]}}
                        yield from _of_entry(kind, key, one, file.name)
                elif kind == "egress" and name in entry.get("from", ()):
                    yield from _of_entry(kind, key, entry, file.name)
        for kind in _TABLES:
            if name in document.get(kind, {}):
                yield _Statement(name, kind, document[kind][name], file.name, "", "")


def _of_entry(kind: str, key: str, entry: Mapping[str, Any], file: str) -> Iterator[_Statement]:
    source, as_of = str(entry.get("source", "")), str(entry.get("as_of", ""))
    for field, value in entry.items():
        if field not in {key, "source", "as_of"}:
            yield _Statement(f"{kind} {entry[key]}", field, value, file, source, as_of)


def _computed(name: str, catalogue: Catalogue) -> Iterator[_Statement]:
    """Yield what follows from several files, discounts included: usual VM, and traffic."""
    if name not in catalogue.regions:
        return
    provider = name.partition(":")[0]
    if type_id := catalogue.default_vm_types.get(provider):
        usd = round(catalogue.vm_usd_per_h(name, type_id), 6)
        yield _Statement(name, f"{type_id}, USD/h", usd, "", "as the files above say", "")
    elsewhere = next(region for region in catalogue.regions if not region.startswith(provider))
    with suppress(DataError):
        rule = catalogue.egress_price(name, elsewhere)
        usd_per_gb = [round(tier.usd_per_gb, 6) for tier in rule.tiers]
        field = f"to the internet, USD/GB ({rule.name})"
        yield _Statement(name, field, usd_per_gb, "", rule.source, rule.as_of)


def _shown(value: object) -> str:
    words = json.dumps(value) if not isinstance(value, str) else value
    return words if len(words) <= 60 else f"{words[:57]}..."
