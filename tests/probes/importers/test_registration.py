"""Importers of other distributions, found by their entry points, and what is wrong with some."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from relayd.store import open_store
from tests.module_graph import ROOT

EXAMPLE = ROOT / "examples" / "plugin" / "relayd_carbon" / "importer.py"
LOG = "# linkmeter 2\n2026-11-01T10:00:00Z 812.5 Mbit/s x1\n2026-11-01T10:05:00Z soon\n"


def distribution(folder: Path, module: str, entry: str) -> None:
    """Lay a module and the metadata of its distribution into a folder, as pip does."""
    folder.mkdir(exist_ok=True)
    (folder / "meter.py").write_text(module)
    metadata = folder / "meter-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: meter\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[relayd.importers]\n{entry}\n")


def relayd(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "relayd", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
    )


def test_an_importer_of_another_distribution_is_one_like_ours(tmp_path: Path) -> None:
    distribution(tmp_path, EXAMPLE.read_text(), "linkmeter = meter:IMPORTER")
    (tmp_path / "log.txt").write_text(LOG)
    assert "linkmeter" in relayd(tmp_path, "import", "--help").stdout
    ends = ("--src", "aws:us-east-1", "--dst", "aws:eu-west-1")
    done = relayd(tmp_path, "import", "log.txt", *ends, "--db", "store.db")
    assert done.returncode == 0, done.stderr
    assert "log.txt, linkmeter's log: 1 samples added" in done.stdout
    assert "no test in this line (line 3)" in done.stdout
    with open_store(tmp_path / "store.db", mode="read") as store:
        (sample,) = store.samples.read()
    assert (sample.metric, sample.value) == ("per_flow_mbps", 812.5)
    refused = relayd(tmp_path, "import", "log.txt", "--db", "store.db")
    assert refused.returncode == 2
    assert "--src is needed, because log.txt is linkmeter's log" in refused.stderr


def test_an_importer_that_forgets_to_ask_for_ends_stores_no_link_to_itself(tmp_path: Path) -> None:
    forgetful = EXAMPLE.read_text().replace("    needs_ends=True,", "    needs_ends=False,")
    assert forgetful != EXAMPLE.read_text()
    distribution(tmp_path, forgetful, "linkmeter = meter:IMPORTER")
    (tmp_path / "log.txt").write_text(LOG)
    ends = ("--src", "aws:us-east-1", "--dst", "aws:us-east-1")
    done = relayd(tmp_path, "import", "log.txt", *ends, "--db", "store.db", "--trust")
    assert done.returncode == 5
    assert "skipped 1: src and dst are the same region" in done.stdout
    with open_store(tmp_path / "store.db", mode="read") as store:
        assert list(store.samples.read()) == []


@pytest.mark.parametrize(
    ("module", "entry", "said"),
    [
        ("", "linkmeter = meter:IMPORTER", "linkmeter = meter:IMPORTER) can't be loaded"),
        ("raise RuntimeError('no')", "linkmeter = meter:X", "RuntimeError('no')"),
        ("IMPORTER = 5", "linkmeter = meter:IMPORTER", "is no Importer, but 5"),
        ("from probes.importers.ping import IMPORTER", "ping = meter:IMPORTER", "Two entry points"),
        ("from probes.importers.ping import IMPORTER", "pong = meter:IMPORTER", "called 'ping'"),
    ],
)
def test_an_importer_that_can_t_be_registered_is_one_error_that_names_it(
    tmp_path: Path, module: str, entry: str, said: str
) -> None:
    distribution(tmp_path, module, entry)
    (tmp_path / "log.txt").write_text(LOG)
    refused = relayd(tmp_path, "import", "log.txt", "--db", "store.db")
    assert refused.returncode == 2
    assert said in refused.stderr
    assert "meter (entry point" in refused.stderr
    assert "Traceback" not in refused.stderr
