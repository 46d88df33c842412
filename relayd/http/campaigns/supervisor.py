"""Starting campaigns and ending them with the service: one at a time, each in a process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from relayd.http.middleware.logs import Log
from relayd.http.responses.problems import ProblemError
from relayd.store import Location
from relayd.store.location import Address

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0


class CampaignSupervisor:
    """Runs campaigns with one fleet.

    Parameters
    ----------
    fleet : Path | None
        Without one there are no campaigns.
    db : Path or Address
    catalogues : sequence of Path
    log : Log
    watched : bool
        Whether a watcher holds the fleet, so that there are no campaigns on request.
    """

    def __init__(
        self,
        fleet: Path | None,
        db: Location,
        catalogues: Sequence[Path],
        log: Log,
        *,
        watched: bool = False,
    ) -> None:
        self._fleet = fleet
        self._watched = watched
        self._db = db
        self._catalogues = catalogues
        self._log = log
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
            # Over a pipe, where nobody else reads the password that an address may hold.
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
        self._log.info("campaign started", campaign=self.running)
        self._end = asyncio.create_task(self._wait(process))
        return self.running

    async def _wait(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout
        rest = await process.stdout.read()
        code = await process.wait()
        number, self.running, self._process = self.running, None, None
        if code:
            self._log.warning(
                "campaign ended", campaign=number, code=code, output=rest.decode()[:2000]
            )
        else:
            self._log.info("campaign ended", campaign=number)

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
