"""Campaigns with the service's fleet: one at a time, each in a process of its own."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache
from math import inf
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from planner.model.errors import InputError, RelaydError
from probes.campaign.specification import CampaignSpec, Method, parse_pairs
from probes.campaign.tasks import PHASES, CampaignLimits
from probes.fleet.file import load_fleet
from probes.fleet.hosts import Fleet
from relayd.campaigns.forecast import forecast_campaign
from relayd.campaigns.inputs import MeasuredFleet
from relayd.catalogue.loading import load_catalogue
from relayd.http.problems import ProblemError, problem_of
from relayd.sources.wan import Wan
from relayd.store import Location, open_store
from relayd.store.campaigns import Campaigns

LOG = logging.getLogger(__name__)
STOP_TIMEOUT_S = 30.0
POLL_EVERY_S = 0.1


def regions_of(path: Path | None) -> frozenset[str]:
    """Return the regions of a fleet file as it is now; none where it can't be used."""
    try:
        found = path and path.stat()
    except OSError:
        return frozenset()
    return _regions_of(path, found.st_mtime_ns, found.st_size) if path and found else frozenset()


@lru_cache(maxsize=8)  # read once for each version, also a broken one
def _regions_of(path: Path, modified_ns: int, size_bytes: int) -> frozenset[str]:  # noqa: ARG001
    try:
        return frozenset(host.region for host in fleet_of(path))
    except ProblemError:  # it is in the log
        return frozenset()


def fleet_of(path: Path) -> Fleet:
    """Read the fleet file, or raise a ProblemError (503); the log has what is wrong with it."""
    try:
        return load_fleet(path)
    except InputError as error:
        LOG.warning("fleet", extra={"problem": str(error)})
        problem = "The fleet file of this service can't be used; its log says why."
        raise ProblemError(503, "unavailable", problem) from None


def forecast(wan: Wan, fleet: Path, location: Location, request: dict[str, Any]) -> dict[str, Any]:
    """Return the forecast of a campaign as JSON types; in a worker, because it takes a while.

    Raises InputError or ProblemError if the request or the fleet file can't be used.
    """
    hosts = fleet_of(fleet)
    with open_store(location, mode="read") as store:
        measured = MeasuredFleet(hosts, wan.catalogue, store)
        found = forecast_campaign(measured, _spec_of(request, hosts), request["budget_usd"])
    return found.as_json()


def _spec_of(request: dict[str, Any], fleet: Fleet) -> CampaignSpec:
    phases = request["phases"] or PHASES
    return CampaignSpec(
        phases=tuple(phase for phase in PHASES if phase in phases),
        pairs=parse_pairs(request["pairs"], fleet),
        thorough=request["thorough"],
        connections=request["connections"],
    )


def _measure(
    reply: Connection,
    fleet_file: Path,
    db: Location,
    catalogues: Sequence[Path],
    request: dict[str, Any],
) -> None:
    """Run a campaign in this process; its first reply is the campaign's number, or a problem."""
    from relayd.campaigns.running import CampaignRunner, cancelled_by_sigterm  # loads asyncssh

    os.setsid()  # a terminal's Ctrl-C is for the service, which ends this one in good order
    try:
        catalogue, fleet = load_catalogue(catalogues), fleet_of(fleet_file)
        with ExitStack() as stack:
            store = stack.enter_context(open_store(db, mode="create"))
            campaigns, runner = Campaigns(store), CampaignRunner(fleet, catalogue, store)
            try:
                stack.enter_context(campaigns.alone())
            except InputError:
                detail = "Another process is running a campaign on the same store."
                raise ProblemError(409, "conflict", detail) from None
            if not request["resume"]:
                spec = _spec_of(request, fleet)
                campaign = runner.begin(spec, Method(), request["budget_usd"])
            elif (unfinished := runner.unfinished()) is not None:
                campaign = unfinished
            else:
                problem = "finds nothing: the last campaign was finished"
                raise InputError("resume", problem, value=True)
            reply.send(campaign.id)
            minutes = request["max_minutes"]
            deadline_s = inf if minutes is None else time.monotonic() + 60 * minutes
            limits = CampaignLimits(budget_usd=request["budget_usd"], deadline_s=deadline_s)

            async def run() -> None:
                cancelled_by_sigterm()
                with suppress(asyncio.CancelledError):
                    await runner.run(campaign, limits)

            asyncio.run(run())
    except (RelaydError, ProblemError) as error:
        reply.send(problem_of(error))
        sys.exit(1)


class CampaignSupervisor:
    """Runs campaigns with one fleet, unless a watcher holds it.

    Estimating and choosing links take seconds, and SSH has its own event loop: neither is to hold
    up answers. What a campaign does is in the store, so that the end of either process loses
    nothing. `running` is the number of the campaign that runs.
    """

    def __init__(
        self, fleet: Path | None, db: Location, catalogues: Sequence[Path], *, watched: bool = False
    ) -> None:
        self._fleet = fleet
        self._watched = watched
        self._db = db
        self._catalogues = catalogues
        self._process: SpawnProcess | None = None
        self._ended: asyncio.Task[None] | None = None
        self.running: int | None = None

    def refusal(self) -> str:
        """Return the reason for having no campaigns on request here; empty where there are."""
        if self._fleet is None:
            return (
                "This service has no fleet: its operator names a fleet file by "
                "`relayd serve --fleet FILE`."
            )
        if self._watched:
            return (
                "This service watches its fleet: it measures when that is due, and within its "
                "daily budget."
            )
        return ""

    async def begin(self, request: dict[str, Any]) -> int:
        """Start a campaign; returns its number.

        Raises RelaydError or ProblemError: 409 without a fleet or while another one runs; or what
        is wrong with the request.
        """
        if refusal := self.refusal():
            raise ProblemError(409, "conflict", refusal)
        if self._process is not None:
            raise ProblemError(409, "conflict", "A campaign is running already.")
        spawning = get_context("spawn")
        receiving, sending = spawning.Pipe(duplex=False)
        arguments = (sending, self._fleet, self._db, self._catalogues, request)
        self._process = process = spawning.Process(target=_measure, args=arguments)
        try:
            await asyncio.to_thread(process.start)
            sending.close()
            reply: int | ProblemError = await asyncio.to_thread(receiving.recv)
        except (EOFError, OSError):
            self._process = None
            raise ProblemError(503, "unavailable", "The campaign could not be started.") from None
        self.running = reply if isinstance(reply, int) else None
        self._ended = asyncio.create_task(self._wait(process, receiving))
        if isinstance(reply, int):
            LOG.info("campaign started", extra={"campaign": reply})
            return reply
        await self._ended
        raise reply

    async def _wait(self, process: SpawnProcess, reply: Connection) -> None:
        while process.is_alive():
            await asyncio.sleep(POLL_EVERY_S)
        number, self.running, self._process = self.running, None, None
        about: dict[str, Any] = {"campaign": number, "code": process.exitcode}
        if number is not None and process.exitcode:
            with suppress(EOFError):  # it was killed
                about["problem"] = str(reply.recv())
            LOG.warning("campaign ended", extra=about)
        elif number is not None:
            LOG.info("campaign ended", extra=about)
        reply.close()

    async def close(self) -> None:
        """Interrupt what runs; what was measured is kept, and `resume` goes on with it."""
        if (process := self._process) is None or self._ended is None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(asyncio.shield(self._ended), STOP_TIMEOUT_S)
        except TimeoutError:
            process.kill()
            await self._ended
