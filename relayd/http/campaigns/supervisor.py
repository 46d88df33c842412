"""Campaigns with the service's fleet: one at a time, each in a process that ends with it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from planner.model.errors import InputError
from probes.fleet.file import load_fleet
from probes.fleet.hosts import Fleet
from relayd.http.problems import ProblemError
from relayd.store import Location
from relayd.store.location import Address

LOG = logging.getLogger(__name__)
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0


def regions_of(path: Path | None) -> frozenset[str]:
    """Return the regions of a fleet file as it is now; none where it can't be used."""
    if path is None:
        return frozenset()
    try:
        found = path.stat()
    except OSError:
        return frozenset()
    return _regions_of(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=8)  # read once for each version, also a broken one
def _regions_of(path: Path, modified_ns: int, size_bytes: int) -> frozenset[str]:  # noqa: ARG001
    try:
        return frozenset(host.region for host in fleet_of(path))
    except ProblemError:  # it is in the log
        return frozenset()


def fleet_of(path: Path) -> Fleet:
    """Read the fleet file; what is wrong with it is not the fault of who asked.

    Raises
    ------
    ProblemError
        503 if it can't be used; the log says why.
    """
    try:
        return load_fleet(path)
    except InputError as error:
        LOG.warning("fleet", extra={"problem": str(error)})
        raise ProblemError(
            503, "unavailable", "The fleet file of this service can't be used; its log says why."
        ) from None


class CampaignSupervisor:
    """Runs campaigns with one fleet.

    Parameters
    ----------
    fleet : Path | None
        Without one there are no campaigns.
    db : Path or Address
    catalogues : sequence of Path
    watched : bool
        Whether a watcher holds the fleet, so that there are no campaigns on request.
    """

    def __init__(
        self, fleet: Path | None, db: Location, catalogues: Sequence[Path], *, watched: bool = False
    ) -> None:
        self._fleet = fleet
        self._watched = watched
        self._db = db
        self._catalogues = catalogues
        self._process: asyncio.subprocess.Process | None = None
        self._end: asyncio.Task[None] | None = None
        self._beginning = asyncio.Lock()
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
        ProblemError
            409 without a fleet or while another one runs; or what is wrong with the request.
        """
        if refusal := self.refusal():
            raise ProblemError(409, "conflict", refusal)
        if self._beginning.locked() or self.running is not None:
            raise ProblemError(409, "conflict", "A campaign is running already.")
        async with self._beginning:
            return await self._begin(request)

    async def _begin(self, request: dict[str, Any]) -> int:
        content = {
            "fleet": str(self._fleet),
            # Over a pipe, where no other user reads the password that an address may hold.
            "db": self._db.reveal() if isinstance(self._db, Address) else str(self._db),
            "catalogues": [str(path) for path in self._catalogues],
            "request": request,
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "relayd.http.campaigns.process",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=os.environ,
            start_new_session=True,
        )
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(content).encode())
        process.stdin.close()
        line = b""
        with contextlib.suppress(TimeoutError):
            line = await asyncio.wait_for(process.stdout.readline(), START_TIMEOUT_S)
        if not line:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            raise ProblemError(503, "unavailable", "The campaign could not be started.")
        reply = json.loads(line)
        if "problem" in reply:
            await process.wait()
            raise ProblemError.of(reply["status"], reply["problem"])
        self._process, self.running = process, int(reply["id"])
        LOG.info("campaign started", extra={"campaign": self.running})
        self._end = asyncio.create_task(self._wait(process))
        return self.running

    async def _wait(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout
        rest = await process.stdout.read()
        code = await process.wait()
        number, self.running, self._process = self.running, None, None
        if code:
            about = {"campaign": number, "code": code, "output": rest.decode()[:2000]}
            LOG.warning("campaign ended", extra=about)
        else:
            LOG.info("campaign ended", extra={"campaign": number})

    async def close(self) -> None:
        """Interrupt what runs; what was measured is kept, and `resume` goes on with it."""
        if self._process is None or self._end is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(asyncio.shield(self._end), STOP_TIMEOUT_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._end
