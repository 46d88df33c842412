"""Runs of a verification on the fleet: servers and relays up, all clients together, all down."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from math import inf

from planner.model.units import MBPS_PER_GBPS
from probes.campaign.findings import Findings, steady_sample
from probes.fleet.failures import ProbeError, first_of
from probes.fleet.sessions import Sessions
from probes.tools.interface import Result, Test
from probes.tools.iperf3 import Iperf3
from probes.tools.running import Ports, make_test, prepared, run_client
from probes.verification.outcomes import PathOutcome, RunOutcome
from probes.verification.relays import relaying
from probes.verification.runs import PathRun, Run

GETTING_READY_S = 60.0
"""Longest time that the first server waits for the last client."""


async def run(sessions: Sessions, ports: Ports, what: Run) -> RunOutcome:
    """Run paths at the same time; return what each carried.

    Raises
    ------
    ProbeError
        Naming the host at fault. Whatever happens, nothing is left on the hosts.
    """
    tool = Iperf3()
    longest_setup_s = max(path.setup_s for path in what.paths)
    relays: dict[str, str] = {}
    tests: list[tuple[PathRun, Test]] = []
    async with AsyncExitStack() as stack:
        for path in what.paths:
            for stream in path.streams:
                src, dst = stream.hosts[0], stream.hosts[-1]
                test = replace(
                    make_test(sessions.fleet, tool, src, dst),
                    connections=stream.connections,
                    duration_s=what.measured_s,
                    omit_s=what.omit_s,
                    most_mbps=_mbps(path.most_gbps) / len(path.streams),
                )
                lasting_s = GETTING_READY_S + longest_setup_s
                if len(stream.hosts) == 3:
                    # The relay reaches the server by another address than the receiver would.
                    test = replace(test, address=sessions.fleet.target(stream.hosts[1], src))
                test = await stack.enter_async_context(
                    prepared(sessions, ports, tool, test, lasting_s=lasting_s, tether=True)
                )
                if len(stream.hosts) == 3:
                    relay = stream.hosts[1]
                    address, port, program = await stack.enter_async_context(
                        relaying(
                            sessions,
                            ports,
                            relay,
                            src,
                            dst,
                            test.port,
                            stream.connections,
                            tool.limit_s(test) + lasting_s,
                        )
                    )
                    relays[relay] = program
                    test = replace(test, address=address, port=port)
                await sessions.session(dst)
                tests.append((path, test))
        began_s = time.time()

        async def client(path: PathRun, test: Test) -> Result:
            # All are to be up to speed at the same time.
            await asyncio.sleep(longest_setup_s - path.setup_s)
            try:
                return await run_client(sessions, tool, test, tether=True)
            except ProbeError as error:
                if error.of_the_host or len(path.path.regions) == 2:
                    raise
                raise ProbeError(
                    error.host,
                    error.cause,
                    f"{error.problem} (through a relay)",
                    f"The relay accepts only the addresses that the fleet file has for "
                    f"{error.host}, and must be reachable at port {test.port}.",
                ) from None

        try:
            async with asyncio.TaskGroup() as group:
                running = [group.create_task(client(path, test)) for path, test in tests]
        except* ProbeError as failed:
            raise first_of(failed) from None
    results = [(path, task.result()) for (path, _), task in zip(tests, running, strict=True)]
    return RunOutcome(what, tuple(_outcome(path, results, began_s) for path in what.paths), relays)


def _outcome(path: PathRun, results: list[tuple[PathRun, Result]], began_s: float) -> PathOutcome:
    own = [result for of, result in results if of is path]
    samples = tuple(
        steady_sample([result], Findings())._replace(measured_at_s=began_s) for result in own
    )
    return PathOutcome(path, samples, sum(result.sent_gb for result in own), began_s)


def _mbps(gbps: float) -> float:
    return 0.0 if gbps == inf else gbps * MBPS_PER_GBPS
