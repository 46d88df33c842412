"""Probes of a VM's cap: one to many, or many to one, all at the same time."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace

from planner.model.errors import InputError
from planner.model.units import MBPS_PER_GBPS, MS_PER_S
from probes.analysis.caps import PeerTest, cap_estimate, together_mbps
from probes.analysis.series.steady import Interval
from probes.campaign.findings import Findings
from probes.campaign.tasks import ProbeTask
from probes.campaign.throughput_tests import ThroughputTester
from probes.fleet.failures import ProbeError, first_of
from probes.samples import Metric, Sample
from probes.tools.interface import Result, Test
from probes.tools.running import prepared, run_client

LEAST_OMIT_S, LEAST_MEASURED_S = 2, 3
TOGETHER_INTERVAL_S = 0.25
"""Short, to leave out what a peer carried before others began and after they ended."""


async def probe_cap(
    tester: ThroughputTester,
    task: ProbeTask,
    findings: Findings,
    omit_s: float,
    rtt_ms: Callable[[str, str], float],
) -> None:
    """Load one VM from or towards several others at once; add its cap to the findings.

    Raises
    ------
    ProbeError
        Naming the host at fault.
    """
    sources = {src for src, _ in task.pairs}
    outward = len(sources) == 1
    hub = task.pairs[0][0] if outward else task.pairs[0][1]
    omit_s = max(omit_s, LEAST_OMIT_S)
    measured_s = max(LEAST_MEASURED_S, round(task.duration_s) - omit_s)
    fleet = tester.sessions.fleet
    began_s = time.time()
    async with AsyncExitStack() as servers:
        tests: list[Test] = []
        for src, dst in task.pairs:
            test = tester.make(src, dst, task.connections, measured_s, omit_s)
            test = replace(
                test, interval_s=TOGETHER_INTERVAL_S, most_gb=findings.left_gb / len(task.pairs)
            )
            tests.append(
                await servers.enter_async_context(
                    prepared(tester.sessions, tester.ports, tester.tool, test)
                )
            )
        # The tests are to begin together: logins first, and a tool opens its connections one
        # after the other, a round trip each.
        for src, dst in task.pairs:
            await tester.sessions.session(dst if tester.tool.client_at_dst else src)
        opening_s = [task.connections * rtt_ms(src, dst) / MS_PER_S for src, dst in task.pairs]

        async def loaded(test: Test, wait_s: float) -> tuple[Result, float]:
            await asyncio.sleep(wait_s)
            return await run_client(tester.sessions, tester.tool, test), time.monotonic()

        busy_since_s = time.monotonic()
        try:
            async with asyncio.TaskGroup() as group:
                running = [
                    group.create_task(loaded(test, max(opening_s) - own_s))
                    for test, own_s in zip(tests, opening_s, strict=True)
                ]
        except* ProbeError as failed:
            error = first_of(failed)
            tester.charge_lost(task, findings, time.monotonic() - busy_since_s, tests, error)
            raise error from None
        findings.busy_s += time.monotonic() - busy_since_s
    peers: dict[str, PeerTest] = {}
    for test, (result, ended_s) in zip(tests, (t.result() for t in running), strict=True):
        findings.sent.append((test.src.name, test.dst.name, result.sent_gb))
        mean = Interval(measured_s, result.samples[0].value)
        peer = test.dst.name if outward else test.src.name
        peers[peer] = PeerTest(ended_s, result.intervals or (mean,))
    tester.refuse_if_held(tests, [task.result()[0] for task in running])
    try:
        together = together_mbps(peers)
    except InputError as error:
        raise ProbeError(hub, "busy", error.problem, error.remedy or "") from None
    if not sum(together.values()):
        raise ProbeError(hub, "output", "nothing got through while all peers were loaded")
    estimate = cap_estimate(together, dict.fromkeys(together), measured_at_s=began_s)
    region = fleet[hub].region
    metric: Metric = "egress_cap_mbps" if outward else "ingress_cap_mbps"
    first = running[0].result()[0].samples[0]
    detail = {
        "host": hub,
        "together_mbps": {fleet[peer].region: round(v, 3) for peer, v in together.items()},
        "low_mbps": round(estimate.low * MBPS_PER_GBPS, 3),
        "high_mbps": round(estimate.high * MBPS_PER_GBPS, 3),
    }
    findings.samples.append(
        Sample(
            region,
            region,
            metric,
            estimate.expected * MBPS_PER_GBPS,
            began_s,
            first.tool,
            connections=task.connections * len(task.pairs),
            duration_s=measured_s,
            warmed_up=True,
            src_zone=fleet[hub].zone,
            dst_zone=fleet[hub].zone,
            src_vm=fleet[hub].vm_type,
            dst_vm=fleet[hub].vm_type,
            detail=json.dumps(detail),
            address=first.address,
        )
    )
