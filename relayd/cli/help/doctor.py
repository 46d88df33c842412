"""``relayd data doctor``: what is installed, what can be reached, and what has grown old."""

from __future__ import annotations

import argparse
import platform
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

from planner.model.errors import RelaydError
from probes.fleet.file import load_fleet
from relayd.cli import text
from relayd.cli.options import store_of, wan_of
from relayd.cli.output import respond
from relayd.questions.caveats import OLD_PRICE_S, price_age_s
from relayd.settings import load_settings
from relayd.snapshots.building import vm_type_notes
from relayd.sources.wan import Wan
from relayd.store import Location, default_path, parse_location
from relayd.version import __version__

State = Literal["ok", "note", "problem"]
# Module: the extra that brings it, and what it is for.
EXTRAS = {
    "psycopg": ("postgresql", "stores on a PostgreSQL server"),
    "pandas": ("pandas", "data frames of links and matrices"),
    "pyarrow": ("parquet", "listings as Parquet"),
    "vl_convert": ("report", "charts of `relayd study report`"),
    "distributed": ("dask", "backtests on a Dask cluster"),
    "mcp": ("mcp", "tools for assistants"),
    "airflow": ("airflow", "tasks that plan and wait"),
    "ray": ("ray", "tasks and weights on a cluster"),
    "sky": ("skypilot", "an admin policy: tasks near their data"),
}
PROGRAMS = {
    "iperf3": "the lab, and hosts that measure",
    "ssh": "logging in to hosts by hand",
    "pg_dump": "backups of stores on a PostgreSQL server",
}
LITTLE_BYTES = 1e9


class Check(NamedTuple):
    """One thing that was looked at, and what to do about it; nothing where it is well."""

    name: str
    state: State
    found: str
    remedy: str = ""


def run(options: argparse.Namespace) -> int:
    """Look at this installation and what it works with; exit code 4 if something is wrong."""
    checks = [*_installed(), *_knowledge(options)]
    style = {"ok": text.GREEN, "note": text.DIM, "problem": text.YELLOW}
    lines = [
        text.page().filled(
            f"{text.page().styled(one.state.ljust(7), style[one.state])}  {one.name}: {one.found}. "
            f"{one.remedy}".rstrip(),
            " " * 9,
        )
        for one in checks
    ]
    respond(options, {"checks": [check._asdict() for check in checks]}, "\n".join(lines))
    return 4 if any(check.state == "problem" for check in checks) else 0


def _installed() -> Iterator[Check]:
    where = Path(__file__).resolve().parents[3]
    python = f"Python {platform.python_version()} on {platform.system()}"
    yield Check("relayd", "ok", f"{__version__} in {where}, {python}")
    for module, (extra, purpose) in EXTRAS.items():
        remedy = f"pip install 'relayd[{extra}]'."
        yield _there(module, find_spec(module) is not None, purpose, remedy)
    for program, purpose in PROGRAMS.items():
        yield _there(program, shutil.which(program) is not None, purpose)


def _there(name: str, there: bool, purpose: str, remedy: str = "") -> Check:
    if there:
        return Check(name, "ok", f"installed (for {purpose})")
    return Check(name, "note", f"not installed (for {purpose})", remedy)


def _knowledge(options: argparse.Namespace) -> Iterator[Check]:
    looked_at = "settings"
    try:
        settings = load_settings()
        looked_at = "store"
        wan = wan_of(options)
        snapshot = wan.snapshot
    except RelaydError as error:
        yield Check(looked_at, "problem", str(error).removesuffix("."))
        return
    where = str(options.db or settings.db or "the default store")
    rests = f"{snapshot.id} ({snapshot.source}), as of {snapshot.as_of}"
    measured = snapshot.source != "baseline"
    remedy = "" if measured else "Nothing was measured: `relayd probe` or `relayd import`."
    yield Check("knowledge", "ok" if measured else "note", f"{where}: {rests}", remedy)
    with suppress(RelaydError), store_of(options, "read") as store:
        for note in vm_type_notes(store, snapshot.id):
            yield Check("samples", "note", note)
    yield from _ages(wan)
    yield from _disk(parse_location(options.db) if options.db else settings.db)
    yield from _fleet(settings.fleet)


def _ages(wan: Wan) -> Iterator[Check]:
    now_s = time.time()
    links = list(wan.links())
    old = sum(link.aggregate_gbps.outlived(now_s) for link in links)
    tested = sum(link.aggregate_gbps.measured_at_s is not None for link in links)
    if tested:
        remedy = "`relayd probe` measures again." if old else ""
        found = f"{tested} of {len(links)} links were measured, {old} too long ago to rely on"
        yield Check("measurements", "problem" if old else "ok", found, remedy)
    prices = wan.catalogue.egress_prices
    old = sum((price_age_s(price, now_s) or 0.0) > OLD_PRICE_S for price in prices)
    remedy = "`relayd data catalogue show` has their dates, `update` renews some." if old else ""
    found = f"{old} of {len(prices)} egress prices are more than a year old"
    yield Check("prices", "note" if old else "ok", found, remedy)


def _disk(where: Location | None) -> Iterator[Check]:
    file = where or default_path()
    if not isinstance(file, Path):
        return
    folder = next(folder for folder in file.absolute().parents if folder.is_dir())
    free_bytes = shutil.disk_usage(folder).free
    little = free_bytes < LITTLE_BYTES
    remedy = "Free some space: a store that can't grow takes no samples." if little else ""
    found = f"{free_bytes / 1e9:.1f} GB free at {folder}"
    yield Check("disk", "problem" if little else "ok", found, remedy)


def _fleet(file: Path | None) -> Iterator[Check]:
    if file is None:
        return
    try:
        fleet = load_fleet(file)
    except RelaydError as error:
        yield Check("fleet", "problem", str(error).removesuffix("."))
    else:
        yield Check(
            "fleet", "ok", f"{len(fleet)} hosts in {file}", "`relayd measure fleet check` logs in."
        )
