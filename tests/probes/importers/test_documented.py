"""Every documented file is right, or refused with a reason that is true."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from planner.model.errors import RelaydError
from probes.importers import HEAD_BYTES, identified
from probes.importers.options import split
from probes.samples import Sample, SkippedRow
from relayd.catalogue.loading import load_catalogue
from tests.probes.importers.documented import FILES, Documented
from tests.probes.importers.reading import OPTIONS, outcomes


def refused(content: bytes, **options: Any) -> str:
    """Return the reasons why a file gives no sample."""
    try:
        found = outcomes("", content, **options)
    except RelaydError as error:
        return str(error)
    assert not [one for one in found if isinstance(one, Sample)]
    return " ".join(one.reason for one in found if isinstance(one, SkippedRow))


@pytest.mark.parametrize("file", FILES, ids=lambda one: f"{one.format}: {one.name}")
def test_a_documented_file_is_right_or_refused_for_its_reason(file: Documented) -> None:
    content = file.content.encode()
    if isinstance(file.right, str):
        assert file.right in refused(content, **file.options)
        return
    assert identified(content[:HEAD_BYTES], "a").importer.name == file.format
    found = outcomes("", content, **file.options)
    told = {one.metric: one.value for one in found if isinstance(one, Sample)}
    samples = [one for one in found if isinstance(one, Sample)]
    right = {name: value for name, value in file.right.items() if name not in ("src", "at_s")}
    assert {name: told[name] for name in told if name != "jitter_ms"} == pytest.approx(right)
    ends = OPTIONS.src, OPTIONS.dst[:-2]
    if "provider" not in file.options and "metric" not in file.options:
        assert {(one.src, one.dst) for one in samples} == {
            ends[::-1] if file.right.get("src") == ends[1] else ends
        }
    assert {one.measured_at_s for one in samples} >= {
        file.right.get("at_s", samples[0].measured_at_s)
    }


def test_a_command_that_is_guessed_reads_the_file() -> None:
    content = b"when,from_region,to_region,latency_us\n2026-11-01,us-east-1,eu-west-1,68100\n"
    words = shlex.split(refused(content).partition("guess: ")[2])
    columns = dict(pair.split("=") for pair in words[words.index("--columns") + 1].split(","))
    ends = {"src": "from_region", "dst": "to_region"}
    assert columns == {**ends, "measured_at": "when", "rtt_us": "latency_us"}
    (sample,) = outcomes("", content, columns=columns, provider="aws")
    assert isinstance(sample, Sample)
    assert (sample.src, sample.value, sample.measured_at_s) == ("aws:us-east-1", 68.1, 1793491200.0)


def test_zones_are_of_azure_s_regions_and_of_no_site_of_one_s_own() -> None:
    regions = [one for one in load_catalogue().regions if one.startswith("azure:")]
    assert len(regions) > 40
    for region in regions:
        assert split(f"{region}-2") == (region, "2")
    assert split("azure:place-1") == ("azure:place-1", "")
