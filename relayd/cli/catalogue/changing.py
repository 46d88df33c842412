"""``relayd data catalogue diff``, ``import``, ``update`` and ``undo``."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime
from math import inf, log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, NoReturn

from planner.model.errors import InputError, RelaydError
from planner.model.units import parse_duration_s
from planner.transfer.plan import Plan
from relayd.catalogue.comparison import CatalogueComparison, PriceMove, compared
from relayd.catalogue.documents.formats import Reading, read_prices
from relayd.catalogue.loading import load_catalogue
from relayd.catalogue.overlays import (
    add_overlay,
    overlay_folder,
    overlays_in_force,
    toml_of,
    undo_overlay,
)
from relayd.cli import text
from relayd.cli.options import catalogue_files, service_address, store_location
from relayd.cli.output import pick, respond
from relayd.settings import load_settings
from relayd.sources.stored import StoredWan
from relayd.sources.wan import Wan
from relayd.store import open_store
from relayd.store.events import record_change
from relayd.store.location import parse_location

PRICE_MOVED = 0.01
_MOST_BYTES = 8 * 2**30
"""Of a download."""
_SHOWN = 8


class _Change(NamedTuple):
    """A price list, what it would change, the overlay's text, and the overlay once written."""

    reading: Reading
    comparison: CatalogueComparison
    effects: list[PlanEffect]
    overlay: str
    path: Path | None = None


def run(options: argparse.Namespace) -> int:
    """Lay the prices of documents over the catalogue, or print what that would change.

    Raises an InputError if a document can't be used, or ``--as-of`` is no date.
    """
    reading = read_prices([Path(name) for name in options.paths])
    if options.as_of:
        try:
            reading.prices.as_of = date.fromisoformat(options.as_of).isoformat()
        except ValueError:
            remedy = "Write it as 2026-11-22."
            raise InputError("--as-of", "is no date", value=options.as_of, remedy=remedy) from None
    lay(reading, options)
    return 0


def lay(reading: Reading, options: argparse.Namespace) -> None:
    """Print what prices change, and, unless it is a dry run, write the overlay if they do."""
    change = _change(reading, options)
    if change.comparison.document and not options.dry_run:
        path = add_overlay(change.overlay, reading.name, _today())
        change = change._replace(path=path)
        _record(options, "catalogue import", path)
    respond(options, _as_json(change), "\n".join(_report(change)))


def undo(options: argparse.Namespace) -> int:
    """Set overlays aside."""
    undone = undo_overlay(options.overlay)
    for path in undone:
        _record(options, "catalogue undo", path)
    left = [str(path) for path in overlays_in_force()]
    said = [f"Undone: {path.name}, kept in {path.parent}" for path in undone]
    return respond(options, {"undone": list(map(str, undone)), "overlays": left}, "\n".join(said))


def _change(reading: Reading, options: argparse.Namespace) -> _Change:
    """Compare, and load the catalogue with the overlay, so that none is written that is wrong."""
    below = load_catalogue()
    comparison = compared(reading.prices, below, reading.title)
    head = {
        "source": reading.title,
        "as_of": reading.prices.as_of,
        "made_on": _today().isoformat(),
        "currency": "USD",
        "read": [str(path) for path in list(reading.files)[:_SHOWN]],
        "files": len(reading.files),
    }
    overlay = toml_of({"overlay": head, **comparison.document})
    if not comparison.document:
        return _Change(reading, comparison, [], overlay)
    settings, files = load_settings(), catalogue_files(options)
    where = parse_location(options.db) if options.db else settings.db
    if service_address(options):
        where = None  # a service has a catalogue of its own: plans rest on this machine's store
    with TemporaryDirectory() as folder:
        new = Path(folder) / "new.toml"
        new.write_text(overlay, encoding="utf-8")
        catalogues = [load_catalogue(files), load_catalogue(files, [*overlays_in_force(), new])]
    wans = [StoredWan(catalogue, where, settings.fleet) for catalogue in catalogues]
    return _Change(reading, comparison, effects(*wans), overlay)


def _today() -> date:
    return datetime.now(UTC).date()


# ---- what is printed ---------------------------------------------------------------------------


def _report(change: _Change) -> list[str]:
    found, prices = change.comparison, change.reading.prices
    headline = "Nothing changes: the catalogue has these prices."
    if change.path:
        headline = f"In force: {change.path.name}. `relayd data catalogue undo` takes it back."
    elif found.document:
        headline = (
            "Nothing has changed yet: `relayd data catalogue import` lays these over the catalogue."
        )
    dated = f", as of {prices.as_of}" if prices.as_of else ""
    number = len(change.reading.files)
    known = [
        (name, f"{len(moves):,}", *(f"{count:,}" for count in _counts(moves)))
        for name, moves in (("VM prices", found.vms), ("prices of traffic", found.traffic))
    ]
    lines = [
        text.page().styled(headline, text.BOLD),
        f"{change.reading.title}, {number:,} {'file' if number == 1 else 'files'}{dated}\n",
        text.page().table(("", "known", "over 1 % up", "over 1 % down", "about as before"), known),
    ]
    if found.quotas:
        moved_to = [quota for quota in found.quotas if quota.before != quota.after]
        new = sum(quota.before is None for quota in moved_to)
        quotas = f"{len(found.quotas):,} vCPU quotas: {new:,} new, {len(moved_to) - new:,} changed"
        lines.append(quotas)
    for words, names in (
        ("VM types new, left out (the list does not say what networks carry)", found.new_types),
        ("regions new, left out (the list does not say where they are)", found.new_regions),
        ("VM types not in the list, which stay", found.missing_types),
        ("regions not in the list, which stay", found.missing_regions),
    ):
        if names:
            more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
            named = f"{len(names):,} {words}: {', '.join(names[:_SHOWN])}{more}"
            lines.append(text.page().filled(named, indent="  "))
    if prices.left_out:
        why = "; ".join(f"{count:,} {reason}" for reason, count in prices.left_out.most_common())
        lines.append(text.page().filled(f"Not used: {why}", indent="  "))
    if moves := _largest([*found.vms, *found.traffic]):
        shown = text.page().table_of(
            moves,
            "largest changes=subject | $ before=before | $ after=after | =change",
            change=lambda move: f"{move.ratio - 1:+.1%}" if move.before else "from 0",
        )
        lines.append(f"\n{shown}")
    return [*lines, f"\n{_plans(change.effects)}"] if change.effects else lines


def _counts(moves: Sequence[PriceMove]) -> tuple[int, int, int]:
    up = sum(move.ratio > 1 + PRICE_MOVED for move in moves)
    down = sum(move.ratio < 1 - PRICE_MOVED for move in moves)
    return up, down, len(moves) - up - down


def _largest(moves: Sequence[PriceMove]) -> list[PriceMove]:
    moved = [move for move in moves if abs(move.ratio - 1) > PRICE_MOVED]
    return sorted(moved, key=lambda m: abs(log(m.ratio)) if m.ratio else inf, reverse=True)[:_SHOWN]


def _plans(found: Sequence[PlanEffect]) -> str:
    changed = [effect for effect in found if effect.changes]
    transfers = f"{len(found)} usual transfers of {VOLUME_GB:g} GB"
    if not changed:
        return f"None of {transfers} would be planned otherwise, or cost more or less."
    return text.page().table_of(
        changed,
        f"{len(changed)} of {transfers} change=link | before=before.verdict | "
        "$=before.cost_usd.total | after=after.verdict | $=after.cost_usd.total",
    )


def _as_json(change: _Change) -> dict[str, object]:
    found, prices = change.comparison, change.reading.prices

    def moves(all_of: Sequence[PriceMove]) -> dict[str, object]:
        counts = dict(zip(("up", "down", "same"), _counts(all_of), strict=True))
        listed = [m._asdict() for m in all_of if abs(m.ratio - 1) > PRICE_MOVED]
        return {"known": len(all_of), **counts, "moved": listed}

    def planned(plan: Plan) -> dict[str, object]:
        return {"verdict": plan.verdict, "usd": plan.cost_usd.total}

    return {
        "overlay": None if change.path is None else str(change.path),
        "changes": bool(found.document),
        "source": change.reading.title,
        "as_of": prices.as_of,
        "files": {str(file): one.name for file, one in change.reading.files.items()},
        "vm_prices": moves(found.vms),
        "traffic": moves(found.traffic),
        "vcpu_quotas": [quota._asdict() for quota in found.quotas],
        **pick(found, "new_types new_regions missing_types missing_regions"),
        "left_out": dict(prices.left_out),
        "plans": [
            pick(
                effect,
                "src dst changes",
                before=planned(effect.before),
                after=planned(effect.after),
            )
            for effect in change.effects
        ],
    }


def _record(options: argparse.Namespace, action: str, overlay: Path) -> None:
    """Record a change of an overlay, where there is a store; what fails is said, and no more."""
    where = store_location(options)
    if service_address(options) or (isinstance(where, Path) and not where.exists()):
        return
    try:
        with open_store(where, mode="write") as store:
            record_change(store.database, action, overlay.name)
    except RelaydError as error:
        print(f"relayd: who did this is not recorded: {error}", file=sys.stderr)


VOLUME_GB = 500.0
# Between and within the providers, near and far, in both directions of the dearest.
TRANSFERS = (
    ("aws:us-east-1", "aws:sa-east-1"),
    ("aws:us-east-1", "azure:westeurope"),
    ("aws:eu-central-1", "gcp:asia-northeast1"),
    ("azure:eastus", "aws:us-west-2"),
    ("azure:westeurope", "gcp:us-central1"),
    ("azure:brazilsouth", "azure:eastus"),
    ("azure:southeastasia", "aws:eu-west-1"),
    ("gcp:us-central1", "azure:eastus"),
    ("gcp:southamerica-east1", "aws:us-east-1"),
    ("gcp:europe-west1", "gcp:asia-southeast1"),
)


class PlanEffect(NamedTuple):
    """A transfer's plan before and after."""

    src: str
    dst: str
    before: Plan
    after: Plan

    @property
    def changes(self) -> bool:
        """Whether the plan is another one, or its cost moves by over 0.5 %."""
        before, after = self.before.cost_usd.total, self.after.cost_usd.total
        return self.before.verdict != self.after.verdict or abs(after - before) > 0.005 * before


def effects(before: Wan, after: Wan) -> list[PlanEffect]:
    """Plan the transfers with two catalogues; those that can't be planned are left out."""
    found = []
    for src, dst in TRANSFERS:
        try:
            plans = [wan.plan(src, dst, volume_gb=VOLUME_GB) for wan in (before, after)]
        except RelaydError:
            continue  # the user's rules or files leave nothing to compare
        found.append(PlanEffect(src, dst, *plans))
    return found


# ---- update ------------------------------------------------------------------------------------


def update(options: argparse.Namespace) -> int:
    """Download the providers' price lists of today, and lay them over the catalogue.

    Raises an InputError if an option is wrong, or the lists can't be written.
    """
    regions = _asked(options)
    until_s = time.monotonic() + parse_duration_s(options.timeout, "--timeout")
    try:
        files = asyncio.run(_fetched(regions, options.url, until_s))
    except OSError as error:
        problem = f"can't be written ({error.strerror})"
        remedy = "Free some space or make it writable; nothing has changed."
        raise InputError(str(overlay_folder()), problem, remedy=remedy) from None
    lay(read_prices(files), options)
    if "aws" in regions and not regions["aws"]:
        print(
            "VM prices of AWS are some hundred MB a region: name regions, such as --region "
            "aws:us-east-1, to renew them too.",
            file=sys.stderr,
        )
    return 0


def _asked(options: argparse.Namespace) -> dict[str, list[str]]:
    """Return the providers to ask, with the regions whose VM prices are wanted."""
    from relayd.catalogue.downloading import FEEDS

    def refuse(field: str, problem: str, value: str, remedy: str) -> NoReturn:
        """Raise an InputError."""
        raise InputError(field, problem, value=value, remedy=remedy)

    with_key = [name for name, feed in FEEDS.items() if not feed.key or os.environ.get(feed.key)]
    regions: dict[str, list[str]] = {name: [] for name in options.provider or with_key}
    for name in regions:
        if name not in FEEDS:
            remedy = f"Known are {', '.join(FEEDS)}; import lists of others from files."
            refuse("--provider", "publishes no list", name, remedy)
        key = FEEDS[name].key
        if not os.environ.get(key, "").isprintable():
            raise InputError(key, "is no key: it has characters that keys have not")
        if name not in with_key:
            remedy = f"Set {key} to a key for its API, or import a file."
            refuse("--provider", "needs a key", name, remedy)
    if options.url and len(regions) > 1:
        refuse("--url", "is of one provider", options.url, "Say --provider, too.")
    for region in options.region:
        provider, _, name = region.partition(":")
        if provider not in regions or not name:
            remedy = f"Write it such as {next(iter(regions))}:NAME."
            refuse("--region", "is of no provider asked", region, remedy)
        regions[provider].append(name)
    return regions


async def _fetched(regions: dict[str, list[str]], url: str | None, until_s: float) -> list[Path]:
    from relayd.catalogue.downloading import FEEDS, Downloads, session

    files: list[Path] = []
    shown = text.Progress()
    for provider, names in regions.items():
        feed = FEEDS[provider]
        # Not in the address, which is kept and shown.
        headers = {"X-Goog-Api-Key": os.environ[feed.key]} if feed.key else {}

        def progress(words: str, provider: str = provider) -> None:
            shown.show(f"{provider}: {words}")

        async with session(headers) as asking:
            downloads = Downloads(
                overlay_folder() / "downloads" / provider,
                url or feed.base,
                asking,
                most_bytes=_MOST_BYTES,
                until_s=until_s,
                progress=progress,
            )
            files += await feed.fetch(downloads, names)
    shown.end()
    return files
