"""Names of strangers reach terminals and spreadsheets as text, never as commands."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.network import Network
from relayd.cli.data.exporting import write_adjacency, write_csv
from relayd.cli.output import _csv
from relayd.cli.text import neutralised, page, redrawn, safe_output
from tests.properties import examples
from tests.relayd.cli.conftest import Terminal
from tests.relayd.conftest import Relayd

# A title, a cleared screen, a C1 introducer, an overwritten line and a reversed reading order.
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31mBer\rlin\u202e\x00\x7f"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@given(st.text())
@settings(max_examples=examples(50))
def test_escapes_are_json_and_all_else_stays(text: str) -> None:
    safe = neutralised(text)
    assert not CONTROL.search(safe)
    if text.isprintable():
        assert safe == text
    document = json.dumps([text], ensure_ascii=False)
    assert json.loads(neutralised(document)) == [text]


def test_a_terminal_gets_our_own_sequences_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with safe_output():
        print(page().styled(f"bold {HOSTILE}", "1"))
        print(f"relayd: {HOSTILE}", file=sys.stderr)
        sys.stderr.writelines([redrawn("half")])
    shown = "\\u001b]0;owned\\u0007\\u001b[2J\\u009b31mBer\\u000dlin\\u202e\\u0000\\u007f"
    assert out.getvalue() == f"\033[1mbold {shown}\033[0m\n"
    assert err.getvalue() == f"relayd: {shown}\n\033[G\033[Khalf"


def test_a_name_can_not_forge_a_row_of_a_table() -> None:
    for left in (False, True):
        assert len(page().table(("a", "b"), [("x\ny", "1\t2")], left=left).splitlines()) == 2


@pytest.mark.parametrize(
    "words",
    [
        "data regions onprem:*",
        "data regions --json",
        "plan onprem:berlin us-east",
        "data regions {0}x",
    ],
)
def test_commands_print_no_control_character_of_a_catalogue(
    relayd: Relayd, tmp_path: Path, words: str
) -> None:
    text = json.dumps(HOSTILE)  # TOML's basic strings have the same escapes
    file = tmp_path / "hostile.toml"
    file.write_text(
        f'[[region]]\nid = "onprem:berlin"\ncity = {text}\ncountry = "DE"\ncontinent = "EU"\n'
        f'area = "EU"\nlatitude_deg = 52.5\nlongitude_deg = 13.4\n'
        '[[vm_type]]\nid = "onprem:node"\nvcpus = 16\negress_gbps = 10.0\ningress_gbps = 10.0\n'
        f"flow_gbps = 10.0\nwindow_mb = 32.0\nprice_usd_per_h = 0.0\nsource = {text}\n"
        f'as_of = "2026-11"\n[default_vm_types]\nonprem = "onprem:node"\n[[egress]]\n'
        f'name = "uplink"\nfrom = ["onprem:*"]\nto = ["*"]\nsource = {text}\nas_of = "2026-11"\n'
        "tiers = [{ usd_per_gb = 0.0 }]\n"
    )
    said = relayd(*(word.format(HOSTILE) for word in words.split(" ")), "--catalogue", file)
    assert not CONTROL.search(said.out + said.err)
    assert said.code == (2 if "{0}x" in words else 0), said.err
    if "--json" in words:
        (ours,) = [each for each in json.loads(said.out)["regions"] if each["city"] == HOSTILE]
        assert ours["id"] == "onprem:berlin"


def test_cells_of_csv_are_no_formulas() -> None:
    names = ["=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "\t=1", "aws:us-east-1"]
    network = Network.from_matrices(names, np.full((6, 6), 5.0), rtt_ms=10.0)

    def listed(_: Network, stream: io.StringIO) -> None:  # a matrix has names above, too
        stream.write(_csv([dict.fromkeys(names, name) for name in names]))

    for write in (write_csv, write_adjacency, listed):
        stream = io.StringIO()
        write(network, stream)
        cells = {cell for row in csv.reader(io.StringIO(stream.getvalue())) for cell in row}
        assert not [cell for cell in cells if cell[:1] in {"=", "+", "-", "@", "\t"}]
        assert {"'=HYPERLINK(1)", "aws:us-east-1"} <= cells
