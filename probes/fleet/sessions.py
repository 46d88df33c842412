"""The SSH connections to a fleet: one a host, made at first use.

A lost connection is made again at the next use, which first ends the processes that the lost one
left on its host; without a next use, that happens at the end.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from types import TracebackType

import asyncssh

from probes.fleet.hosts import Fleet
from probes.fleet.login import Timeouts, connect
from probes.fleet.session import HostSession


class Sessions:
    """Connections to hosts of a fleet, made at first use.

    Parameters
    ----------
    fleet : Fleet
    owner : str
        Names this controller for good, so that a later run finds the leftovers of this one.
    at_once : int
        Connections that may be in the making at a time.
    on_note : callable
        Called with a line where processes of an earlier run were ended at first contact.
    sysctls : mapping
        Settings that hosts are to have for as long as they are connected to.
    visited : collection of str
        Hosts where an earlier run of this controller, which may have been killed, was at work. Its
        leftovers are ended at first contact, at the end of this run at the latest.
    permit : callable
        Called before each tool is started; raises where this controller may not, or no longer.
    """

    def __init__(
        self,
        fleet: Fleet,
        owner: str,
        *,
        at_once: int = 64,
        timeouts: Timeouts | None = None,
        on_note: Callable[[str], None] = lambda _: None,
        sysctls: Mapping[str, str] = {},
        visited: Collection[str] = (),
        permit: Callable[[], None] = lambda: None,
    ) -> None:
        self.fleet = fleet
        self._owner = owner
        self._timeouts = timeouts or Timeouts()
        self._making = asyncio.Semaphore(at_once)
        self._sessions: dict[str, HostSession] = {}
        self._unswept = set(visited)
        self._jumps: dict[str, asyncssh.SSHClientConnection] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._on_note = on_note
        self._sysctls = sysctls
        self._permit = permit

    async def __aenter__(self) -> Sessions:
        # Each host takes one or two open files.
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._sysctls = {}  # a host that is only visited to clean up keeps its settings
        names = [*self._sessions, *(self._unswept - self._sessions.keys())]
        await asyncio.gather(*map(self._leave, names), return_exceptions=True)
        for jump in self._jumps.values():
            jump.close()
        for jump in self._jumps.values():
            with suppress(TimeoutError, OSError, asyncssh.Error):
                await asyncio.wait_for(jump.wait_closed(), 2.0)

    async def _leave(self, name: str) -> None:
        """Close the connection to a host; where it is lost, connect once more to clean up."""
        session = self._sessions.pop(name, None)
        if session is None or not await session.close():
            async with asyncio.timeout(self._timeouts.connect_s):
                again = await self.session(name)
            await again.close()

    async def session(self, name: str) -> HostSession:
        """Return the session with a host, connecting if none is open.

        Raises ProbeError if the host can't be reached, is not the one it was, or refuses the
        login.
        """
        async with self._locks.setdefault(name, asyncio.Lock()):
            current = self._sessions.get(name)
            if current is not None and current.is_open:
                return current
            host = self.fleet[name]
            # A host that can't be reached now is not waited for a second time at the end.
            self._unswept.discard(name)
            self._sessions.pop(name, None)
            tunnel = await self._jump(host.jump) if host.jump else None
            async with self._making:
                connection = await connect(host, self._timeouts, tunnel)
            session = HostSession(host, connection, self._owner, self._timeouts, self._permit)
            try:
                session.leftovers = await session.end() or 0
                if self._sysctls:
                    await session.change(self._sysctls)
            except BaseException:
                await session.close()
                raise
            if session.leftovers:
                self._on_note(
                    f"{name}: ended {session.leftovers} processes left by an earlier run."
                )
            self._sessions[name] = session
            return session

    def forget(self, name: str) -> None:
        """Drop the connection to a host that does not answer, to make a new one at next use."""
        if session := self._sessions.pop(name, None):
            session.abort()
            self._unswept.add(name)

    async def _jump(self, name: str) -> asyncssh.SSHClientConnection:
        async with self._locks.setdefault(f"jump {name}", asyncio.Lock()):
            found = self._jumps.get(name)
            if found is None or found.is_closed():
                found = await connect(self.fleet.login(name), self._timeouts, None)
                self._jumps[name] = found
            return found
