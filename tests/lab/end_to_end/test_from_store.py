"""A lab of what was measured: import, `lab up --from-store`, and measure it again."""

from __future__ import annotations

import time
from collections.abc import Iterator, MutableMapping
from functools import partial
from pathlib import Path
from statistics import median

import pytest

from benchmarks.lab_measuring import Transfer, echo_rtts_ms, goodputs_mbps
from probes.lab.controller import Lab
from relayd.__main__ import main
from tests.lab.quiet import undisturbed

pytestmark = pytest.mark.alone

SCALE = 0.02
MEASURED = """\
src,dst,rtt_ms,per_flow_mbps,aggregate_gbps,connections,duration_s,warmed_up,measured_at
aws:us-east-1,gcp:us-east1,30,800,,1,20,true,{now}
aws:us-east-1,gcp:us-east1,,,4.0,64,20,true,{now}
gcp:us-east1,aws:us-east-1,30,400,,1,20,true,{now}
gcp:us-east1,aws:us-east-1,,,2.0,64,20,true,{now}
"""


@pytest.fixture
def lab(machine: None, tmp_path: Path, environment: MutableMapping[str, str]) -> Iterator[Lab]:
    environment["RELAYD_LAB_DIR"] = str(tmp_path / "labs")
    db, table = str(tmp_path / "measured.db"), tmp_path / "measured.csv"
    # Lately: what was measured long ago has faded.
    lately = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600))
    table.write_text(MEASURED.format(now=lately))
    assert main(["import", "csv", str(table), "--db", db]) == 0
    pair = "aws:us-east-1,gcp:us-east1"
    up = ["measure", "lab", "up", "--from-store", "--db", db, "--regions", pair]
    assert main([*up, "--scale", str(SCALE), "--name", "again"]) == 0
    yield Lab("again")
    assert main(["measure", "lab", "down", "--name", "again"]) == 0


def test_a_lab_of_a_store_measures_as_what_was_imported(lab: Lab) -> None:
    rtts = undisturbed(lab, lambda: echo_rtts_ms(lab, [(0, 1)], 30)[0, 1])
    assert abs(median(rtts) - 30) < 0.5
    one_each_way = [Transfer(0, 1), Transfer(1, 0)]
    flows = undisturbed(lab, lambda: goodputs_mbps(lab, one_each_way, 4, 2))
    for source, flow_mbps, pair_mbps in ((0, 800, 4000), (1, 400, 2000)):
        many = Transfer(source, 1 - source, 16)
        pair = undisturbed(lab, partial(goodputs_mbps, lab, [many], 4, 2))[0]
        assert abs(flows[source] / (flow_mbps * SCALE) - 1) <= 0.05
        assert abs(pair / (pair_mbps * SCALE) - 1) <= 0.05
