"""Transfers in every state, reported to a service as programs report them."""

from __future__ import annotations

import time

from relayd.client.blocking import RemoteWan

EASTUS, CANADA, SAO_PAULO, DUBLIN = (
    "azure:eastus",
    "azure:canadacentral",
    "aws:sa-east-1",
    "aws:eu-west-1",
)
HOSTILE = "<b>night</b>\u202e & 'copy'"


def report_transfers(url: str, label: str = HOSTILE) -> None:
    """Begin transfers of a split plan and without one; some run, are late or silent, or ended."""
    now_s = time.time()
    with RemoteWan(url) as wan:
        plan = wan.plan(CANADA, SAO_PAULO, volume_gb=20_000, time_value_usd_per_h=500)
        gb_per_s = plan.throughput_gbps / 8
        steady = {"plan": plan, "volume_gb": 20_000}
        wan.begin_transfer(
            CANADA, SAO_PAULO, id="nightly-7", deadline_s="1d", at_s=now_s - 1200, **steady
        )
        for ago_s in (900, 600, 300, 0):
            moved_gb = gb_per_s * (1200 - ago_s)
            wan.report_transfer("nightly-7", moved_gb, at_s=now_s - ago_s)
        late = {"label": label, "deadline_s": "40min", "at_s": now_s - 1800}
        wan.begin_transfer(CANADA, SAO_PAULO, id="slow-1", **late, **steady)
        for ago_s in (1000, 0):
            moved_gb = 0.15 * gb_per_s * (1800 - ago_s)
            wan.report_transfer("slow-1", moved_gb, at_s=now_s - ago_s)
        wan.begin_transfer(EASTUS, DUBLIN, id="logs-3", volume_gb=40, silent_after_s=1)
        for number, state in enumerate(("finished", "failed", "cancelled")):
            name = f"{state}-1"
            began_s = now_s - 7200 - 60 * number
            wan.begin_transfer(SAO_PAULO, DUBLIN, id=name, volume_gb=500, at_s=began_s)
            wan.report_transfer(name, 120, at_s=now_s - 4000)
            problem = None if state == "finished" else "disk full"
            moved_gb = 500 if state == "finished" else 130
            wan.end_transfer(name, state, moved_gb=moved_gb, problem=problem, at_s=now_s - 3600)
