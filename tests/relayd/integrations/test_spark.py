"""Event logs of Spark: what was shuffled in which region, and what follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest

import relayd
from planner.model.errors import FormatError, InputError
from relayd.integrations.spark import cores_by_region, read_shuffles, shuffle_plan
from tests.relayd.integrations.spark_cluster import Place, cluster, submit

# Of the job below, as Spark 4.3 wrote it, cut to the events that are read.
LOG = Path(__file__).with_name("event_log.jsonl")
CORES = {"azure:eastus": 3, "aws:us-east-1": 2, "aws:ap-northeast-1": 1}
JOB = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("orders").getOrCreate()
rows = spark.sparkContext.parallelize(range(60_000), 6).map(lambda n: (n, str(n) * 3))
assert rows.groupByKey(6).count() == 60_000
spark.stop()
"""


def test_a_log_says_what_each_region_wrote_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (shuffle,) = read_shuffles(LOG)
    assert shuffle.read_in == CORES
    assert shuffle.input_gb == {
        "aws:us-east-1": 0.000252948,
        "azure:eastus": 0.000417848,
        "aws:ap-northeast-1": 0.000139266,
    }
    assert shuffle.read_s == 1.426
    plan = shuffle_plan(shuffle, partitions=12, wan=relayd.open())
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


@pytest.mark.integrations
def test_a_cluster_logs_its_regions(tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark")
    home = Path(pyspark.__file__).parent
    job = tmp_path / "job.py"
    job.write_text(JOB)
    workers = [(Place(region), cores) for region, cores in CORES.items()]
    with cluster(home, tmp_path, workers) as master:
        log = submit(home, master, workers[0][0], 6, tmp_path / "logs", job)
    (shuffle,) = read_shuffles(log)
    assert shuffle.read_in == CORES
    assert shuffle.partitions == 6
