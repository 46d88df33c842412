"""Skyplane's raw files: the real ones where they are, and rows with every fault."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from itertools import islice
from statistics import median
from typing import Any

import pytest

from planner.model.errors import FormatError, InputError
from probes.importers import options, read, skyplane
from probes.importers.tables import TOO_FEW
from probes.importers.text import CUT_OFF
from probes.samples import Sample
from tests.probes.importers.reading import OPTIONS, outcomes, reasons, samples, skipped
from tests.shared_data import shared

HEADER = (
    "src_region,src_tier,src_instance_class,dst_region,dst_tier,dst_instance_class,"
    "iperf3_connections,iperf3_runtime,tag,stdout_path,stderr_path,throughput_sent,"
    "throughput_received,cpu_utilization,success\n"
)
HOSTS = {"window_mb": 536.870912}
"""The profiler raises windows to half of 1 GiB."""
LATENCY_HEADER = (
    "src_region,src_tier,src_instance_class,dst_region,dst_tier,dst_instance_class,"
    "min_rtt,avg_rtt,max_rtt,mdev_rtt\n"
)


def row(
    received: str = "4.5e9",
    *,
    src: str = "aws:eu-west-3",
    dst: str = "gcp:europe-west6-a",
    tier: str = "PREMIUM",
    connections: str = "64",
    runtime: str = "5",
    success: str = "True",
) -> str:
    return (
        f"{src},PREMIUM,m5.8xlarge,{dst},{tier},n2-standard-32,{connections},{runtime},"
        f"tag,out,err,9e9,{received},7.5,{success}\n"
    )


def rtt_row(dst: str, low: str, mean: str, high: str, src: str = "gcp:us-east1-b") -> str:
    return f"{src},PREMIUM,n2-standard-4,{dst},PREMIUM,m5.large,{low},{mean},{high},\n"


def test_a_throughput_row_becomes_one_sample_of_what_was_received() -> None:
    (sample,) = samples("skyplane-throughput", HEADER + row())
    assert sample == Sample(
        "aws:eu-west-3",
        "gcp:europe-west6",
        "aggregate_mbps",
        4500.0,
        1.65e9,
        "skyplane",
        connections=64,
        duration_s=5.0,
        warmed_up=False,
        src_zone="",
        dst_zone="a",
        src_vm="m5.8xlarge",
        dst_vm="n2-standard-32",
        detail=json.dumps(HOSTS),
    )
    (single,) = samples("skyplane-throughput", HEADER + row(connections="1"))
    assert single.metric == "per_flow_mbps"
    # From November 2022 on, the profiler misspells a column.
    later = HEADER.replace("throughput_received", "throughput_recieved")
    assert samples("skyplane-throughput", later + row()) == [sample]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"success": "False"}, skyplane.FAILED),
        ({"success": "Tru"}, skyplane.FAILED),
        ({"received": ""}, "throughput_received is empty"),
        ({"received": "0.0"}, "throughput_received is zero"),
        ({"received": "-3e9"}, "throughput_received is negative"),
        ({"received": "1e300"}, "throughput_received is over 100 Tbit/s"),
        ({"received": "4_500"}, "throughput_received is not a number"),
        ({"dst": "aws:eu-west-3"}, options.SAME_REGION),
        ({"src": "gcp:europe-west6-b"}, options.SAME_REGION),
        ({"src": "eu-west-3"}, skyplane.BAD_REGION),
        ({"tier": "STANDARD"}, "network tier STANDARD is not among those kept"),
        ({"connections": "0"}, skyplane.BAD_CONNECTIONS),
        ({"runtime": "-1"}, skyplane.BAD_DURATION),
    ],
)
def test_a_throughput_row_that_can_not_be_used_is_skipped_with_its_line(
    changed: dict[str, str], reason: str
) -> None:
    found = outcomes("skyplane-throughput", HEADER + row() + row(**changed) + row())
    assert [type(outcome).__name__ for outcome in found] == ["Sample", "SkippedRow", "Sample"]
    assert found[1] == (3, reason)


def test_other_tiers_are_kept_on_request_and_say_so() -> None:
    tiers = ("PREMIUM", "STANDARD")
    premium, mixed = samples(
        "skyplane-throughput", HEADER + row() + row(tier="STANDARD"), tiers=tiers
    )
    assert json.loads(premium.detail) == HOSTS
    assert json.loads(mixed.detail) == {"src_tier": "PREMIUM", "dst_tier": "STANDARD"} | HOSTS
    (stock,) = samples("skyplane-throughput", HEADER + row(), hosts="as they come")
    assert stock.detail == ""


def test_a_missing_column_and_time_are_named() -> None:
    lacks = (HEADER + row()).replace("dst_tier", "tier").replace(",success", ",ok")
    with pytest.raises(FormatError, match="lacks the column dst_tier, success"):
        outcomes("skyplane-throughput", lacks)
    with pytest.raises(InputError, match="--measured-at"):
        outcomes("skyplane-throughput", HEADER + row(), measured_at_s=None)


def test_a_cut_off_end_is_never_a_number() -> None:
    whole = HEADER + row() + row("123456789.25")
    expected = samples("skyplane-throughput", whole)
    for length in range(len(HEADER + row()) + 1, len(whole)):
        found = outcomes("skyplane-throughput", whole[:length])
        assert [outcome for outcome in found if isinstance(outcome, Sample)] == expected[:1]
        assert set(reasons(found)) <= {TOO_FEW, CUT_OFF}
    assert samples("skyplane-throughput", whole[:-1], force=True) == expected


def test_a_file_without_end_is_read_in_flat_memory() -> None:
    class Endless(io.BytesIO):
        """The header, then the same row for ever."""

        def readinto(self, buffer: Any) -> int:
            content = super().read() or row().encode() * 500
            buffer[: len(content)] = content
            return len(content)

    found = read("skyplane-throughput", Endless(HEADER.encode()), OPTIONS)
    tracemalloc.start()
    for count in (2000, 6000):  # the first ones fill the buffers
        tracemalloc.reset_peak()
        before_bytes, _ = tracemalloc.get_traced_memory()
        assert sum(1 for _ in islice(found, count)) == count
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes - before_bytes < 0.6e6, "6,000 samples held at once take over 1.5 MB"


def test_the_real_throughput_file_agrees_with_its_tidied_form() -> None:
    path = shared("skyplane/throughput_2022-01.csv")
    found = outcomes("skyplane-throughput", path)
    by_pair: dict[tuple[str, str], list[float]] = {}
    for outcome in found:
        if isinstance(outcome, Sample):
            by_pair.setdefault((outcome.src, outcome.dst), []).append(outcome.value)
    with shared("aggregate_2022-01.csv").open(newline="") as stream:
        tidied = {
            (line["src"], line["dst"]): float(line["throughput_received_gbps"])
            for line in csv.DictReader(stream)
        }
    assert by_pair.keys() == tidied.keys()
    assert max(len(values) for values in by_pair.values()) > 1, "duplicates stay separate samples"
    for pair, values in by_pair.items():
        assert median(values) / 1000 == pytest.approx(tidied[pair], rel=1e-4, abs=1e-4)
    with path.open() as stream:
        assert len(found) == sum(1 for _ in stream) - 1, "every row is a sample or skipped"


def test_contaminated_rows_from_gcp_are_skipped_and_kept_by_force() -> None:
    content = (
        LATENCY_HEADER
        + rtt_row("aws:us-west-2", "60.0", "60.1", "63.1")  # spread over 3 ms
        + rtt_row("aws:eu-west-1", "80.001", "80.5", "81.001")  # as the next
        + rtt_row("aws:eu-west-2", "80.003", "80.6", "81.002")
        + rtt_row("azure:eastus", "200.0", "204.0", "205.9")  # 2.95 % of 200 ms
        + rtt_row("aws:eu-west-3", "80.002", "80.5", "81.001", src="gcp:us-west1-a")
        + rtt_row("aws:us-west-1", "60.0", "70.0", "90.0", src="azure:eastus")
    )
    found = outcomes("skyplane-latency", content)
    assert {(o.src, o.dst) for o in found if isinstance(o, Sample)} == {
        ("gcp:us-east1", "azure:eastus"),
        ("gcp:us-west1", "aws:eu-west-3"),
        ("azure:eastus", "aws:us-west-1"),
    }
    assert sorted(skipped("skyplane-latency", content)) == [
        (2, skyplane.WIDE_SPREAD),
        (3, skyplane.REPEATED),
        (4, skyplane.REPEATED),
    ]
    assert len(samples("skyplane-latency", content, force=True)) == 6
    twice = rtt_row("aws:eu-west-1", "80.0", "80.5", "81.0") * 2  # repeats nothing
    assert len(samples("skyplane-latency", LATENCY_HEADER + twice)) == 2


@pytest.mark.parametrize(
    ("figures", "reason"),
    [
        (("5", "4", "6"), skyplane.OUT_OF_ORDER),
        (("1", "nan", "6"), "avg_rtt is NaN"),
        (("1", "2", "60001"), "max_rtt is over 60 s"),
    ],
)
def test_figures_that_are_no_round_trip_times_are_skipped(
    figures: tuple[str, str, str], reason: str
) -> None:
    content = LATENCY_HEADER + rtt_row("aws:us-west-2", *figures)
    assert outcomes("skyplane-latency", content) == [(2, reason)]


def test_rows_from_gcp_beyond_what_is_held_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skyplane, "HELD_ROWS", 7)
    rows = [
        rtt_row(f"aws:place-{i}", f"{i + 1}", f"{i + 1.1:.1f}", f"{i + 1.2:.1f}") for i in range(23)
    ]
    assert len(samples("skyplane-latency", LATENCY_HEADER + "".join(rows))) == 23


def test_the_real_latency_file_agrees_with_the_marks_of_its_tidied_form() -> None:
    found = samples("skyplane-latency", shared("skyplane/latency_2022-04.csv"))
    with shared("rtt_2022-04.csv").open(newline="") as stream:
        tidied = list(csv.DictReader(stream))
    clean = {
        (line["src"], line["dst"]): float(line["rtt_avg_ms"])
        for line in tidied
        if line["own_row_suspect"] == "0"
    }
    assert len(tidied) - len(clean) == 472
    assert {(sample.src, sample.dst): sample.value for sample in found} == clean
    # And they are the rows to trust: where the tidied file chose a row's own figure, it is ours.
    own = {
        (line["src"], line["dst"]): float(line["rtt_clean_ms"])
        for line in tidied
        if line["clean_from"] == "own"
    }
    assert own
    assert own.items() <= clean.items()
