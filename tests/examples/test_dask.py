"""The Dask example, run for real: counts are right, and reduced where relayd says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.examples.engines import ROOT, result_of


def test_words_are_counted_and_reduced_where_relayd_says(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs distributed (the examples group)")
    script = (
        "import json, relayd\n"
        "from examples.dask.region_shuffle import DATA, buckets, count_words, report\n"
        "outcome = count_words(DATA, relayd.open())\n"
        "print('RESULT', json.dumps([outcome.counts, outcome.region_of_bucket,\n"
        "      buckets(outcome.placement.fractions), DATA, report(outcome)]))\n"
    )
    counts, region_of_bucket, wanted, data, told = result_of(script, tmp_path)
    assert counts == Counter(word for words in data.values() for word in words)
    assert list(region_of_bucket.values()) == wanted
    assert len(set(wanted)) == len(data)
    assert wanted.count("azure:eastus") > len(wanted) / 2  # who holds most moves least
    assert told in (ROOT / "docs" / "dask.md").read_text()
