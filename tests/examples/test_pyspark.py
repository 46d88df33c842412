"""The Spark example, run for real: counts are right, and partitions are what relayd says."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.relayd.integrations.engines import ROOT, result_of


def test_words_are_counted_in_partitions_as_relayd_says(tmp_path: Path) -> None:
    pytest.importorskip("py4j", reason="needs pyspark (the examples group)")
    if shutil.which("java") is None:
        pytest.skip("needs java (scripts/install_tools.sh)")
    script = (
        "import json, relayd\n"
        "from zlib import crc32\n"
        "from examples.pyspark.region_shuffle import DATA, buckets, count_words, report\n"
        "outcome = count_words(DATA, relayd.open())\n"
        "region_of = buckets(outcome.placement.fractions)\n"
        "held = {r: sorted(words) for r, words in outcome.words_of_region.items()}\n"
        "where = {w: region_of[crc32(w.encode()) % len(region_of)] for w in outcome.counts}\n"
        "print('RESULT', json.dumps([outcome.counts, held, where, DATA, report(outcome)]))\n"
    )
    counts, held, where, data, told = result_of(script, tmp_path)
    assert counts == Counter(word for words in data.values() for word in words)
    for region, words in held.items():
        assert words == sorted(word for word, place in where.items() if place == region)
    assert max(held, key=lambda region: len(held[region])) == "azure:eastus"
    assert told in (ROOT / "docs" / "pyspark.md").read_text()
