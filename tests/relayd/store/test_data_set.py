"""All samples as Parquet: exported and imported they are the same, on both engines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow.dataset
import pyarrow.parquet
import pytest

from probes.samples import Sample
from relayd.snapshots.building import make_snapshot
from relayd.store import Store, open_store
from relayd.store.samples import data_set
from relayd.store.samples.decisions import Selection, decide
from relayd.store.samples.ingest import Batch, ingest
from tests.relayd.conftest import Outcome
from tests.relayd.store.engines import Spot
from tests.relayd.store.test_decisions import CATALOGUE

Relayd = Callable[..., Outcome]
REGIONS = ("aws:us-east-1", "azure:eastus", "gcp:us-central1")
JANUARY_S, DAY_S = 1_767_225_600.0, 86400.0  # 2026-01-01


def _found() -> list[Sample]:
    pairs = [(src, dst) for src in REGIONS for dst in REGIONS if src != dst]
    found = [
        Sample(src, dst, "aggregate_mbps", 4000.1 + n, JANUARY_S + n * DAY_S / 3, "iperf3", 64, 9.5)
        for n in range(120)
        for src, dst in pairs
    ]
    of_all = {"src_zone": "a", "dst_vm": "m5.large", "detail": '{"x": "\u00e9\\n"}'}
    return [
        *found,
        Sample(
            *pairs[0],
            "rtt_ms",
            8.25,
            JANUARY_S - 1e-3,
            "ping",
            **of_all,  # type: ignore[arg-type]
            address="private",
            intervals=7,
            new_level=True,
        ),
        Sample(REGIONS[0], REGIONS[0], "egress_cap_mbps", 9500.0, JANUARY_S, "iperf3"),
    ]


def _all(store: Store) -> set[Sample]:
    return set(store.samples.read())


def _ok(outcome: Outcome) -> str:
    assert outcome.code == 0, outcome.err
    return outcome.out


def test_what_is_exported_is_imported_again(spot: Spot, relayd: Relayd, tmp_path: Path) -> None:
    folder = tmp_path / "samples"
    false = Sample(*REGIONS[:2], "aggregate_mbps", 9.0, JANUARY_S, "liar")
    with open_store(spot.where, mode="create") as store:
        ingest(store, Batch("files", "csv"), _found())
        ingest(store, Batch("service", "live", reporter="mallory"), [false])
        decide(store.database, "retract", Selection(token="mallory"), who="ana", reason="lies")
        made = make_snapshot(store, CATALOGUE)
    (tmp_path / ".samples.left").mkdir()  # as an export leaves it that was killed
    assert f"{len(_found()):,} samples" in _ok(
        relayd("export", "samples", "--db", spot.where, "-o", folder)
    )

    # Other programs read it as one table, by month.
    table = pyarrow.dataset.dataset(folder, partitioning="hive")
    assert sorted(path.name for path in folder.iterdir()) == [
        "month=2025-12",
        "month=2026-01",
        "month=2026-02",
    ]
    january = table.to_table(filter=pyarrow.dataset.field("month") == "2026-01")
    assert min(january["measured_at_s"].to_pylist()) == JANUARY_S
    assert table.count_rows() == len(_found())
    assert set(table.to_table()["source"].to_pylist()) == {"files"}
    assert sorted(path.name for path in tmp_path.glob(".*")) == [".samples.left"]

    other = spot.another()
    report = json.loads(_ok(relayd("import", "parquet", folder, "--db", other.where, "--json")))
    assert sum(file["accepted"] for file in report["files"]) == len(_found())
    made_again = report["snapshot"]["id"]
    with open_store(other.where, mode="write") as store:
        assert _all(store) == set(_found())
        assert made is not None
        assert repr(list(store.snapshots.network(made_again))) == repr(_links(spot, made.id))
    said = _ok(relayd("import", "parquet", folder, "--db", other.where))
    assert re.search(r"month=2026-01/part-\d.parquet: 0 samples added, [1-9]", said)


def _links(spot: Spot, snapshot: str) -> list[object]:
    with open_store(spot.where, mode="read") as store:
        return list(store.snapshots.network(snapshot))


def test_only_newer_samples_are_exported_if_that_is_asked(
    spot: Spot, relayd: Relayd, tmp_path: Path
) -> None:
    with open_store(spot.where, mode="create") as store:
        ingest(store, Batch("files", "csv"), _found())
    folder = tmp_path / "new"
    folder.mkdir()
    said = _ok(
        relayd(
            *("export", "samples", "--db", spot.where, "-o", folder, "--since", "2026-02-01"),
            "--json",
        )
    )
    newer = [sample for sample in _found() if sample.measured_at_s >= JANUARY_S + 31 * DAY_S]
    assert json.loads(said)["samples"] == len(newer) > 0
    assert [path.name for path in folder.iterdir()] == ["month=2026-02"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("samples",), "--output: is needed"),
        (("samples", "-o", "{folder}"), "--output: is there already"),
        (("samples", "-o", "/"), "--output: is there already"),
        (("samples", "-o", "{folder}/file/new"), "--output: can't be written (Not a directory)"),
        (("samples", "-o", "{folder}/x", "--format", "csv"), "--format: is none that samples"),
        (("samples", "-o", "{folder}/x", "--since", "May"), "--since: is not an ISO 8601 time"),
        (("graph", "--since", "2026-01-01"), "--since: is of samples"),
        (("graph", "--format", "parquet"), "--format parquet: is of samples"),
    ],
)
def test_what_can_not_be_exported_is_said(
    relayd: Relayd, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    db = tmp_path / "a.db"
    with open_store(db, mode="create") as store:
        ingest(store, Batch("files", "csv"), _found())
    folder = tmp_path / "full"
    folder.mkdir()
    (folder / "file").write_text("mine")
    outcome = relayd("export", *(word.format(folder=folder) for word in words), "--db", db)
    assert outcome.code == 2
    assert said in outcome.err
    assert (folder / "file").read_text() == "mine"
    assert [path.name for path in folder.iterdir()] == ["file"]


def test_months_are_written_part_by_part(
    relayd: Relayd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_set, "BATCH_ROWS", 50)
    with open_store(tmp_path / "a.db", mode="create") as store:
        ingest(store, Batch("files", "csv"), _found())
    folder = tmp_path / "samples"
    _ok(relayd("export", "samples", "--db", tmp_path / "a.db", "-o", folder))
    files = [path.relative_to(folder) for path in folder.rglob("*.parquet")]
    assert len(files) == 3  # months
    assert pyarrow.dataset.dataset(folder, partitioning="hive").count_rows() == len(_found())


def test_a_data_set_of_folders_named_like_files_is_read(relayd: Relayd, tmp_path: Path) -> None:
    with open_store(tmp_path / "a.db", mode="create") as store:
        ingest(store, Batch("files", "csv"), _found())
    folder = tmp_path / "all" / "2026.parquet"
    folder.parent.mkdir()
    _ok(relayd("export", "samples", "--db", tmp_path / "a.db", "-o", folder))
    _ok(relayd("import", "parquet", folder.parent, "--db", tmp_path / "b.db"))
    with open_store(tmp_path / "b.db", mode="read") as store:
        assert _all(store) == set(_found())


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
            Sample(
                *(src, dst, "aggregate_mbps", level * generator.uniform(0.98, 1.02)),
                JANUARY_S + n * DAY_S / 6,
                *("iperf3", 64, 9.5),
                address="private" if n % 3 == 0 else "public",
            )
            for n in range(count)
        ]

    shifted = tests_of(*REGIONS[:2], 4000.0, 1200)
    shifted = [s._replace(value=s.value / 2) if n > 1100 else s for n, s in enumerate(shifted)]
    few = tests_of(*REGIONS[1:], 3000.0, 300)
    few = [s._replace(measured_at_s=s.measured_at_s + 90 * DAY_S) for s in few]
    with open_store(tmp_path / "a.db", mode="create") as store:
        ingest(store, Batch("files", "csv"), [*shifted, *few])
    folder = tmp_path / "samples"
    _ok(relayd("export", "samples", "--db", tmp_path / "a.db", "-o", folder))
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
    assert outcome.code == 2
    assert "--newest: is of data sets" in outcome.err
