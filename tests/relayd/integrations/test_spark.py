"""Event logs of Spark: what was shuffled in which region, and what follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest

import relayd
from planner.model.errors import FormatError, InputError
from relayd.integrations.spark import cores_by_region, read_shuffles, shuffle_plan

# As Spark 4.3 wrote it, cut to the events that are read; tests/lab/ has Spark write others.
LOG = Path(__file__).with_name("event_log.jsonl")
CORES = {"azure:eastus": 3, "aws:us-east-1": 2, "aws:ap-northeast-1": 1}


def test_a_log_says_what_each_region_wrote_and_read(wan: relayd.Wan) -> None:
    (shuffle,) = read_shuffles(LOG)
    assert shuffle.read_in == CORES
    assert shuffle.input_gb == {
        "aws:us-east-1": 0.000252948,
        "azure:eastus": 0.000417848,
        "aws:ap-northeast-1": 0.000139266,
    }
    assert shuffle.read_s == 1.426
    plan = shuffle_plan(shuffle, partitions=12, wan=wan)
    assert len(plan.region_of_partition) == 12
    assert plan.duration_s <= next(
        one.duration_s for one in plan.placement.options if one.name == "equal"
    )
    assert sum(cores_by_region(plan, 7).values()) == 7
    with pytest.raises(InputError, match="fewer than"):
        cores_by_region(plan, 1)


def test_what_a_log_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no event log"):
        read_shuffles(tmp_path)
    plain = tmp_path / "plain"
    plain.write_text(LOG.read_text().replace("aws:us-east-1", ""))
    with pytest.raises(InputError, match="SPARK_EXECUTOR_ATTRIBUTE_REGION"):
        read_shuffles(plain)
    host = plain.read_text().partition('"Host": "')[2].partition('"')[0]
    (shuffle,) = read_shuffles(plain, {host: "gcp:us-east1"})
    assert "gcp:us-east1" in shuffle.read_in
    plain.write_text("no log\n")
    with pytest.raises(FormatError):
        read_shuffles(plain)
