"""Fuzzing of what reads files: measurements, catalogues, prices, fleets, settings, demands."""

from __future__ import annotations

import io
import os
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

from benchmarks.fuzz.findings import Findings
from benchmarks.fuzz.mutations import mutated
from benchmarks.processes import watched_memory
from planner.model.errors import RelaydError
from probes.fleet.file import load_fleet
from probes.importers import importers, read
from probes.importers.limits import PhysicalGate
from probes.samples import QuarantinedSample, Sample
from relayd.catalogue.documents.formats import read_prices
from relayd.catalogue.loading import load_catalogue
from relayd.demands import read_demands
from relayd.files import read_rows
from relayd.http.settings import load_service_settings
from relayd.snapshots.building import make_snapshot
from relayd.store import Store, open_store
from relayd.store.samples.ingest import Batch, ingest
from tests.probes.importers.reading import OPTIONS
from tests.probes.importers.test_importers_damage import WHOLE
from tests.relayd.catalogue import documents

CONFIGS = Path(__file__).parents[2] / "configs"
SLOW_S = 20.0
"""Of a processor; nothing of a few kilobytes may take so long."""
_SNAPSHOT_EVERY = 200
_NEW_STORE_EVERY = 1000

Reader = Callable[[Path], object]


class Importing:
    """Reads files of an importer into a store, and makes snapshots of what got in."""

    def __init__(self, folder: Path) -> None:
        self._catalogue = load_catalogue()
        self._gate = PhysicalGate(self._catalogue)
        self._folder = folder
        self._imported = 0
        self._store: Store | None = None

    def read(self, format_name: str, path: Path) -> None:
        """Import one file; most are refused."""
        if self._store is None or self._imported % _NEW_STORE_EVERY == 0:
            self.close()
            self._store = open_store(self._folder / f"{self._imported}.db", mode="create")
        self._imported += 1
        rows = read(format_name, io.BytesIO(path.read_bytes()), replace(OPTIONS, connections=1))
        gated = (
            QuarantinedSample(row, reason)
            if isinstance(row, Sample) and (reason := self._gate.fault(row))
            else row
            for row in rows
        )
        try:
            ingest(self._store, Batch(path.name, format_name), gated)
        finally:
            if self._imported % _SNAPSHOT_EVERY == 0:
                make_snapshot(self._store, self._catalogue)

    def close(self) -> None:
        """Close the store and remove it."""
        if self._store is not None:
            self._store.close()
            for file in self._folder.glob("*.db*"):
                file.unlink()


def fuzz_files(seconds: float, number: int) -> Findings:
    """Read damaged files until time is up; see :func:`.over_http.fuzz_http`."""
    findings, chance = Findings("files"), Random(number)
    with tempfile.TemporaryDirectory() as name, watched_memory(os.getpid()) as findings.memory_mb:
        folder = Path(name)
        importing = Importing(folder)
        kinds = _kinds(importing, folder)
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            kind = chance.choice(list(kinds))
            reader, whole, ending = kinds[kind]
            content = mutated(chance.choice(whole), whole, chance)
            path = folder / f"fuzzed{ending}"
            path.write_bytes(content)
            began_s = time.process_time()
            try:
                reader(path)
                findings.count(f"{kind} read")
            except RelaydError:
                findings.count(f"{kind} refused")
            except Exception as error:  # noqa: BLE001 - every one is a finding
                where = "".join(traceback.format_exception(error)[-3:])
                findings.problem(f"{kind}: {where}\n{content[:300]!r}")
            if (took_s := time.process_time() - began_s) > SLOW_S:
                findings.problem(f"{kind} took {took_s:.0f} s: {content[:300]!r}")
        importing.close()
    return findings


def _kinds(importing: Importing, folder: Path) -> dict[str, tuple[Reader, list[bytes], str]]:
    """Return the kinds of files, each with its reader, valid examples and suffix."""

    def configs(*patterns: str) -> list[bytes]:
        found = [path for pattern in patterns for path in sorted(CONFIGS.glob(pattern))]
        return [path.read_bytes() for path in found]

    tables = [
        documents.aws_vm_table([("m5.large", "us-east-1", 0.1), ("m5.xlarge", "eu-west-1", 0.2)]),
        documents.aws_traffic_table([("us-east-1", "", 0.0, 0.09)]),
    ]
    sku = documents.google_sku("N2 Instance Core running in Iowa", "us-central1", 0.03)
    pages = [
        documents.azure_page([documents.azure_vm("D32_v5", "eastus", 1.0)]),
        documents.azure_page([documents.azure_traffic("eastus", 0.0, 0.08)]),
        documents.aws_as_json(documents.aws_vm_table([("m5.large", "us-east-1", 0.1)])),
        {"skus": [sku]},
    ]
    texts = [documents.written(folder / "page.json", page).read_bytes() for page in pages]

    def settings(path: Path) -> object:
        return load_service_settings({"config": path}, {}).problems()

    def prices(path: Path) -> object:
        return read_prices([path])

    return {
        **{name: (partial(importing.read, name), WHOLE[name], ".txt") for name in importers()},
        "catalogue": (
            lambda path: load_catalogue((path,), ()),
            configs("catalogue-*.example.toml", "prices-*.toml"),
            ".toml",
        ),
        "prices .json": (prices, texts, ".json"),
        "prices .csv": (prices, tables, ".csv"),
        "fleet": (load_fleet, configs("fleet.example.toml"), ".toml"),
        "settings": (settings, configs("service.example.toml"), ".toml"),
        "demands": (lambda path: read_demands(str(path)), list(_DEMANDS), ".csv"),
        "rows": (lambda path: read_rows(str(path), "rows"), list(_DEMANDS), ".csv"),
    }


_DEMANDS = (
    b"src,dst,volume_gb\nus-east,sa,100\neu,us-east,1.5TB\n",
    b",us-east,sa\nus-east,,5\nsa,7,\n",
    b'[{"src": "us-east", "dst": "sa", "volume_gb": 100}]',
    b'{"us-east": {"sa": 100, "eu": "2TB"}}',
)
