"""Campaigns with the service's fleet: one at a time, each in a thread that ends with it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache
from math import inf
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
from relayd.http.problems import ProblemError
from relayd.sources.wan import Wan
from relayd.store import Location, open_store
from relayd.store.campaigns.log import Campaigns

LOG = logging.getLogger(__name__)
STOP_TIMEOUT_S = 30.0


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
    """Read the fleet file; what is wrong with it (503) is in the log, not the caller's fault."""
    try:
        return load_fleet(path)
    except InputError as error:
        LOG.warning("fleet", extra={"problem": str(error)})
        raise ProblemError(
            503, "unavailable", "The fleet file of this service can't be used; its log says why."
        ) from None


def forecast(wan: Wan, fleet: Path, location: Location, request: dict[str, Any]) -> dict[str, Any]:
    """Return the forecast of a campaign as JSON types; in a worker, because it takes a while.

    Raises
    ------
    InputError, ProblemError
        If the request or the fleet file can't be used.
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


class CampaignSupervisor:
    """Runs campaigns with one fleet, unless a watcher holds it.

    What they do is in the store, so that the end of the process loses nothing.

    Attributes
    ----------
    running : int | None
        The number of the campaign that runs.
    """

    def __init__(
        self, fleet: Path | None, db: Location, catalogues: Sequence[Path], *, watched: bool = False
    ) -> None:
        self._fleet = fleet
        self._watched = watched
        self._db = db
        self._catalogues = catalogues
        self._thread: threading.Thread | None = None
        self._cancel: Callable[[], object] = lambda: None
        self._is_closed = False
        self.running: int | None = None

    def refusal(self) -> str:
        """Return why there are no campaigns on request here; empty where there are."""
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

        Raises
        ------
        RelaydError, ProblemError
            409 without a fleet or while another one runs; or what is wrong with the request.
        """
        if refusal := self.refusal():
            raise ProblemError(409, "conflict", refusal)
        if self._thread is not None and self._thread.is_alive():
            raise ProblemError(409, "conflict", "A campaign is running already.")
        loop = asyncio.get_running_loop()
        number: asyncio.Future[int] = loop.create_future()

        def begun(found: int | Exception) -> None:
            tell: Any = number.set_result if isinstance(found, int) else number.set_exception
            loop.call_soon_threadsafe(lambda: number.done() or tell(found))

        # Estimating and choosing links take seconds, and SSH has an event loop of its own. A
        # service that ends does not wait for a thread like this.
        self._thread = threading.Thread(target=self._run, args=(request, begun), daemon=True)
        self._thread.start()
        return await number

    def _run(self, request: dict[str, Any], begun: Callable[[int | Exception], None]) -> None:
        try:
            self._measure(request, begun)
        except Exception as error:
            if self.running is None:
                begun(error)
            elif isinstance(error, RelaydError):
                about = {"campaign": self.running, "problem": str(error)}
                LOG.warning("campaign ended", extra=about)
            else:
                LOG.error("fault", exc_info=error, extra={"campaign": self.running})
        else:
            LOG.info("campaign ended", extra={"campaign": self.running})
        finally:
            self.running, self._cancel = None, lambda: None

    def _measure(self, request: dict[str, Any], begun: Callable[[int], None]) -> None:
        from relayd.campaigns.running import CampaignRunner  # loads asyncssh

        assert self._fleet
        catalogue, fleet = load_catalogue(self._catalogues), fleet_of(self._fleet)
        with ExitStack() as stack:
            store = stack.enter_context(open_store(self._db, mode="create"))
            campaigns, runner = Campaigns(store), CampaignRunner(fleet, catalogue, store)
            try:
                stack.enter_context(campaigns.alone())
            except InputError:
                detail = "Another process is running a campaign on the same store."
                raise ProblemError(409, "conflict", detail) from None
            if not request["resume"]:
                spec = _spec_of(request, fleet)
                campaign = runner.begin(spec, Method(), request["budget_usd"])
            elif (unfinished := campaigns.unfinished()) is not None:
                campaign = unfinished
            else:
                problem = "finds nothing: the last campaign was finished"
                raise InputError("resume", problem, value=True)
            self.running = campaign.id
            LOG.info("campaign started", extra={"campaign": campaign.id})
            begun(campaign.id)
            minutes = request["max_minutes"]
            deadline_s = inf if minutes is None else time.monotonic() + 60 * minutes
            limits = CampaignLimits(budget_usd=request["budget_usd"], deadline_s=deadline_s)

            async def run() -> None:
                loop, task = asyncio.get_running_loop(), asyncio.current_task()
                assert task
                self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
                if self._is_closed:
                    task.cancel()
                with suppress(asyncio.CancelledError):
                    await runner.run(campaign, limits)

            asyncio.run(run())

    async def close(self) -> None:
        """Interrupt what runs; what was measured is kept, and `resume` goes on with it."""
        self._is_closed = True
        if (thread := self._thread) is not None:
            with suppress(RuntimeError):  # its loop has just been closed
                self._cancel()
            await asyncio.to_thread(thread.join, STOP_TIMEOUT_S)
