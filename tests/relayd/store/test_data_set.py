"""All samples as Parquet: exported and imported they are the same, on both engines."""

from __future__ import annotations

import json
import re
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.dataset
import pyarrow.parquet
import pytest

from probes.samples import Sample
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.building import make_snapshot
from relayd.store import open_store
from relayd.store.samples import data_set
from relayd.store.samples.decisions import decide
from relayd.store.samples.ingest import Batch, ingest
from tests.relayd.building import ping, rate, stored
from tests.relayd.conftest import Outcome, Relayd
from tests.relayd.store.engines import Spot

REGIONS = ("aws:us-east-1", "azure:eastus", "gcp:us-central1")
JANUARY_S, DAY_S = 1_767_225_600.0, 86400.0  # 2026-01-01


def _found() -> list[Sample]:
    found = [
        rate(src, dst, 4000.1 + n, JANUARY_S + n * DAY_S / 3)
        for n in range(120)
        for src, dst in permutations(REGIONS, 2)
    ]
    of_all: dict[str, Any] = {"src_zone": "a", "dst_vm": "m5.large", "address": "private"}
    of_all |= {"detail": '{"x": "\u00e9\\n"}', "intervals": 7, "new_level": True}
    return [
        *found,
        ping(*REGIONS[:2], 8.25, JANUARY_S - 1e-3, **of_all),
        Sample(REGIONS[0], REGIONS[0], "egress_cap_mbps", 9500.0, JANUARY_S, "iperf3"),
    ]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return stored(tmp_path / "a.db", _found())


def _ok(outcome: Outcome) -> str:
    assert outcome.code == 0, outcome.err
    return outcome.out


def test_what_is_exported_is_imported_again(spot: Spot, relayd: Relayd, tmp_path: Path) -> None:
    folder = tmp_path / "samples"
    false = rate(*REGIONS[:2], 9.0, JANUARY_S)
    with open_store(spot.where, mode="create") as store:
        ingest(store, Batch("files", "csv"), _found())
        ingest(store, Batch("service", "live", reporter="mallory"), [false])
        decide(store.database, "retract", {"token": "mallory"}, who="ana", reason="lies")
        made = make_snapshot(store, load_catalogue())
        assert made is not None
        links = repr(list(store.snapshots.network(made.id)))
    (tmp_path / ".samples.left").mkdir()  # as an export leaves it that was killed
    export = ("data", "export", "samples", "--db", spot.where, "-o")
    assert f"{len(_found()):,} samples" in _ok(relayd(*export, folder))

    # Other programs read it as one table, by month.
    table = pyarrow.dataset.dataset(folder, partitioning="hive")
    months = sorted(path.name for path in folder.iterdir())
    assert months == ["month=2025-12", "month=2026-01", "month=2026-02"]
    january = table.to_table(filter=pyarrow.dataset.field("month") == "2026-01")
    assert min(january["measured_at_s"].to_pylist()) == JANUARY_S
    assert table.count_rows() == len(_found())
    assert set(table.to_table()["source"].to_pylist()) == {"files"}
    assert sorted(path.name for path in tmp_path.glob(".*")) == [".samples.left"]

    other = spot.another()
    report = json.loads(_ok(relayd("import", "parquet", folder, "--db", other.where, "--json")))
    assert sum(file["accepted"] for file in report["files"]) == len(_found())
    with open_store(other.where, mode="read") as store:
        assert set(store.samples.read()) == set(_found())
        assert repr(list(store.snapshots.network(report["snapshot"]["id"]))) == links
    said = _ok(relayd("import", "parquet", folder, "--db", other.where))
    assert re.search(r"month=2026-01/part-\d.parquet: 0 samples added, [1-9]", said)

    (tmp_path / "new").mkdir()
    said = _ok(relayd(*export, tmp_path / "new", "--since", "2026-02-01", "--json"))
    newer = [sample for sample in _found() if sample.measured_at_s >= JANUARY_S + 31 * DAY_S]
    assert json.loads(said)["samples"] == len(newer) > 0
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["month=2026-02"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("samples", "Missing --output"),
        ("samples -o {folder}", "--output is there already"),
        ("samples -o {folder}/file/new", "--output can't be written (Not a directory)"),
        ("samples -o {folder}/x --format csv", "--format is none that samples"),
        ("samples -o {folder}/x --since May", "--since is not an ISO 8601 time"),
        ("graph --since 2026-01-01", "--since is of samples"),
        ("graph --format parquet", "--format parquet is of samples"),
    ],
)
def test_what_can_not_be_exported_is_said(
    relayd: Relayd, tmp_path: Path, words: str, said: str, db: Path
) -> None:
    folder = tmp_path / "full"
    folder.mkdir()
    (folder / "file").write_text("mine")
    outcome = relayd("data", "export", *words.format(folder=folder).split(), "--db", db)
    assert outcome.code == 2
    assert said in outcome.err
    assert (folder / "file").read_text() == "mine"
    assert [path.name for path in folder.iterdir()] == ["file"]


def test_months_are_written_part_by_part_and_folders_named_like_files_read(
    relayd: Relayd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    monkeypatch.setattr(data_set, "BATCH_ROWS", 50)
    folder = tmp_path / "all" / "2026.parquet"
    folder.parent.mkdir()
    _ok(relayd("data", "export", "samples", "--db", db, "-o", folder))
    assert len(list(folder.rglob("*.parquet"))) == 3  # months
    _ok(relayd("import", "parquet", folder.parent, "--db", tmp_path / "b.db"))
    with open_store(tmp_path / "b.db", mode="read") as store:
        assert set(store.samples.read()) == set(_found())


def test_a_folder_without_files_is_refused(relayd: Relayd, tmp_path: Path) -> None:
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "part.parquet").write_bytes(b"PAR1")
    outcome = relayd("import", "parquet", tmp_path, "--db", tmp_path / "x.db")
    assert outcome.code == 2
    assert "holds no file *.parquet" in outcome.err
    assert "is a folder" in relayd("import", "csv", tmp_path, "--db", tmp_path / "x.db").err


def test_what_estimates_rest_on_is_imported_alone(relayd: Relayd, tmp_path: Path) -> None:
    generator = Random(1)

    def tests_of(src: str, dst: str, level: float, count: int) -> list[Sample]:
        return [
            rate(
                *(src, dst, level * generator.uniform(0.98, 1.02), JANUARY_S + n * DAY_S / 6),
                address="private" if n % 3 == 0 else "public",
            )
            for n in range(count)
        ]

    shifted = tests_of(*REGIONS[:2], 4000.0, 1200)
    shifted = [s._replace(value=s.value / 2) if n > 1100 else s for n, s in enumerate(shifted)]
    few = tests_of(*REGIONS[1:], 3000.0, 300)
    few = [s._replace(measured_at_s=s.measured_at_s + 90 * DAY_S) for s in few]
    db = stored(tmp_path / "a.db", [*shifted, *few])
    folder = tmp_path / "samples"
    _ok(relayd("data", "export", "samples", "--db", db, "-o", folder))
    table = pyarrow.parquet.read_table(next(folder.glob("*=2026-03")))
    broken = table.slice(0, 3).set_column(3, "value", [[5.0, -1.0, 7.0]])
    pyarrow.parquet.write_table(broken, folder / "strange.parquet")

    links, reports = [], []
    for name, more in (("all.db", ()), ("newest.db", ("--newest",))):
        words = ("import", "parquet", folder, "--trust", "--db", tmp_path / name, "--json", *more)
        reports.append(json.loads(_ok(relayd(*words))))
        with open_store(tmp_path / name, mode="read") as store:
            links.append(list(store.snapshots.network(reports[-1]["snapshot"]["id"])))
    assert repr(links[1]) == repr(links[0])
    # Of 800 public samples 256, of 400 private ones 256; of the other link all.
    assert 0 in [file["accepted"] for file in reports[1]["files"]]  # old files are no fault
    added = [sum(file["accepted"] for file in report["files"]) for report in reports]
    assert added == [1202 + 300, 256 + 256 + 300]
    assert reports[1]["files"][-1]["skipped"] == reports[0]["files"][-1]["skipped"] != {}
    outcome = relayd("import", "parquet", folder / "strange.parquet", "--newest")
    assert (outcome.code, "--newest is of data sets" in outcome.err) == (2, True)
