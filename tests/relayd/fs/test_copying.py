"""Copies between file systems of fsspec: what is told before, and what arrives."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

import relayd.fs
from planner.model.errors import InfeasibleError, InputError
from relayd.fs.copying import CopyForecast
from relayd.sources.wan import Wan
from tests.relayd.building import modelled

ENDS: dict[str, Any] = {"src": "aws:us-east-1", "dst": "gcp:us-east1"}


@pytest.fixture
def bucket() -> Iterator[str]:
    """Return the address of a folder in memory, as an object store has them."""
    name = f"/bucket-{uuid.uuid4().hex}"
    yield f"memory:/{name}"
    memory = fsspec.filesystem("memory")
    if memory.exists(name):
        memory.rm(name, recursive=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with three files, one of them in a folder and one empty."""
    found = tmp_path / "data"
    (found / "deep").mkdir(parents=True)
    (found / "a").write_bytes(b"a" * 3_000_000)
    (found / "deep" / "b c").write_bytes(bytes(range(256)) * 4000)
    (found / "empty").write_bytes(b"")
    return found


@pytest.fixture(scope="module")
def wan() -> Wan:
    return modelled()


def test_price_and_time_are_those_of_the_plan(folder: Path, bucket: str, wan: Wan) -> None:
    told = relayd.fs.forecast(str(folder), bucket, **ENDS, wan=wan)
    assert told.files == 3
    assert told.volume_gb == pytest.approx(4.024e-3)
    plan = wan.plan(*ENDS.values(), volume_gb=told.volume_gb, relays="none", vms=1, connections=3)
    assert told.egress_usd == plan.cost_usd.egress > 0
    assert told.throughput_gbps == plan.throughput_gbps
    assert told.duration_s == plan.duration_s
    assert "3 files, 4.024 MB, aws:us-east-1 -> gcp:us-east1: " in str(told)
    assert not fsspec.filesystem("memory").exists(bucket.removeprefix("memory:/"))

    # Through a third region both links are paid for, and the slower one holds.
    far = relayd.fs.forecast(str(folder), bucket, **ENDS, here="sa", wan=wan)
    assert len(far.links) == 2
    assert far.egress_usd == pytest.approx(sum(one.cost_usd.egress for one in far.links))
    assert far.throughput_gbps == min(one.throughput_gbps for one in far.links)
    near = relayd.fs.forecast(str(folder), bucket, src="sa", dst="sa", wan=wan)
    assert (near.links, near.egress_usd, near.duration_s) == ((), 0, None)
    assert "within one region" in str(near)


def test_files_arrive_as_they_were(
    folder: Path, bucket: str, wan: Wan, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    done = relayd.fs.copy(str(folder), bucket, **ENDS, wan=wan, budget_usd=1.0)
    assert done is not None
    assert done.files == 3
    assert done.sent_gb == pytest.approx(4.024e-3)
    said = capsys.readouterr().err
    assert said.startswith(str(done.forecast))
    assert "an object store" in said
    # And back, into a folder of another name, over what is there; one file by its own name.
    back = tmp_path / "back"
    back.mkdir()
    (back / "a").write_bytes(b"before")
    relayd.fs.copy(
        bucket, str(back), src="gcp:us-east1", dst="aws:us-east-1", wan=wan, budget_usd=1
    )
    relayd.fs.copy(f"{bucket}/a", str(tmp_path / "one"), **ENDS, wan=wan, budget_usd=1)
    for path in (path for path in folder.rglob("*") if path.is_file()):
        assert (back / path.relative_to(folder)).read_bytes() == path.read_bytes()
    assert (tmp_path / "one").read_bytes() == (folder / "a").read_bytes()


def test_nothing_is_sent_without_consent(folder: Path, bucket: str, wan: Wan) -> None:
    asked: list[CopyForecast] = []

    def no(told: CopyForecast) -> bool:
        asked.append(told)
        return False

    with pytest.raises(InfeasibleError, match="over the budget"):
        relayd.fs.copy(str(folder), bucket, **ENDS, wan=wan, budget_usd=1e-9)
    with pytest.raises(InputError, match="no terminal to ask"):
        relayd.fs.copy(str(folder), bucket, **ENDS, wan=wan)
    assert relayd.fs.copy(str(folder), bucket, **ENDS, wan=wan, confirm=no) is None
    assert [told.files for told in asked] == [3]
    assert not fsspec.filesystem("memory").exists(bucket.removeprefix("memory:/"))


def test_a_file_that_changes_meanwhile_does_not_arrive(tmp_path: Path, wan: Wan) -> None:
    source, target = tmp_path / "growing", tmp_path / "target"
    source.write_bytes(b"1234")

    def grow(_told: CopyForecast) -> bool:
        source.write_bytes(b"12345678")
        return True

    with pytest.raises(InputError, match="changed while it was copied"):
        relayd.fs.copy(str(source), str(target), **ENDS, wan=wan, confirm=grow)
    assert not target.exists()


def test_what_is_wrong_is_named() -> None:
    for source, problem in (("nowhere/at/all", "has no files"), ("what://x", "no place of fsspec")):
        with pytest.raises(InputError, match=problem):
            relayd.fs.forecast(source, "memory://x", **ENDS)
