"""The table of metrics: one row is all that a metric takes, from an import to an export."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from planner.model.errors import InputError
from probes.importers.limits import fault
from probes.metrics import METRICS
from tests.module_graph import PACKAGES, ROOT

NEW_NAME = '    "reordered_pct",\n'
NEW_ROW = """\
        MetricFacts(
            name="reordered_pct",
            dimension=SHARE,
            may_be_zero=True,
        ),
"""


def test_a_metric_that_is_not_in_the_table_is_an_error() -> None:
    with pytest.raises(InputError, match="metric is not one that relayd knows"):
        METRICS["reordered_pct"]
    with pytest.raises(InputError, match="metric is not one that relayd knows"):
        fault("reordered_pct", 5000.0, "reordered_pct")  # type: ignore[arg-type]


def test_a_new_metric_is_a_row_and_nothing_else(tmp_path: Path) -> None:
    for package in (*PACKAGES, "configs"):
        shutil.copytree(ROOT / package, tmp_path / package)
    table = tmp_path / "probes" / "metrics.py"
    text = table.read_text()
    text = text.replace('    "ingress_cap_mbps",\n]', f'    "ingress_cap_mbps",\n{NEW_NAME}]')
    text = text.replace('    )\n)\n"""All metrics', f'{NEW_ROW}    )\n)\n"""All metrics')
    table.write_text(text)
    (tmp_path / "reordered.csv").write_text(
        "src,dst,reordered_pct,measured_at\n"
        "aws:us-east-1,aws:eu-west-1,0,2026-11-01T10:00:00Z\n"
        "aws:us-east-1,aws:sa-east-1,12.5,2026-11-01T10:00:00Z\n"
        "aws:us-east-1,aws:eu-west-2,5000,2026-11-01T10:00:00Z\n"
    )

    def relayd(*words: str, db: str = "store.db") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "relayd", *words, "--db", db],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    done = relayd("import", "csv", "reordered.csv")
    assert done.returncode == 0, done.stderr
    assert "2 samples added" in done.stdout
    assert "reordered_pct is over 100 %" in done.stdout
    exported = relayd("data", "export", "samples", "--format", "parquet", "--output", "exported")
    assert exported.returncode == 0, exported.stderr
    again = relayd("import", "exported", db="again.db")
    assert "2 samples added" in again.stdout, again.stderr
    reading = (
        "from relayd.store import open_store\n"
        "with open_store('again.db', mode='read') as store:\n"
        "    for one in store.samples.read():\n"
        "        print(one.dst, one.metric, one.value)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", reading], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines() == [
        "aws:eu-west-1 reordered_pct 0.0",
        "aws:sa-east-1 reordered_pct 12.5",
    ]
