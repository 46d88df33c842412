"""One host's SSH connection: commands as arguments, never shell text, and nothing left running."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import asyncssh

from probes.fleet.failures import ProbeError, missing_tool
from probes.fleet.hosts import Host
from probes.fleet.login import Timeouts, reason_of
from probes.fleet.remote import (
    LEASE_FAILED,
    NOT_FOUND,
    TIMED_OUT,
    Output,
    change_settings,
    end_leases,
    leased,
    leases_of,
    remote_line,
    tethered,
)

MOST_OUTPUT_BYTES = 8 * 2**20
# OpenSSH lets a connection have ten channels (MaxSessions); some are kept for ending processes.
CHANNELS = 8
REOPEN_S = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Pauses before a refused channel is asked for again. A server that reads the end of some channels
and requests for new ones at once counts both, and so refuses channels that it has room for."""
START_S = 10.0
"""Time within which a server must listen or end."""
HEARTBEAT_S, SILENCE_S = 1.5, 5
"""Time between heartbeats of a tethered process, and silence after which it ends. Processes that
may run longer are tethered: another controller follows one that hangs after 6.6 s at least."""


class RemoteProcess:
    """A process on a host: a tool, or its server, which runs until it is stopped."""

    def __init__(
        self, session: HostSession, lease: str, process: asyncssh.SSHClientProcess[bytes]
    ) -> None:
        self._session = session
        self._lease = lease
        self._process = process

    async def line_with(self, *texts: bytes) -> bytes:
        """Return the next line of output that contains one of some texts; empty if none does."""
        async with self._session.guarded(START_S):
            for _ in range(100):
                line = await self._process.stdout.readline()
                if not line or any(text in line for text in texts):
                    return line
        return b""

    async def output(self, limit_s: float = START_S) -> Output:
        """Wait for the end and return the output since."""
        async with self._session.guarded(limit_s):
            return await self._session.collected(self._process)

    async def ended(self) -> Output:
        """End it, and return the output since."""
        await self._session.end(self._lease)
        return await self.output()

    async def stop(self, grace_s: float = 1.0) -> None:
        """Wait briefly for it to end by itself, then end it by its process id."""
        try:
            async with asyncio.timeout(grace_s):
                await self._process.wait_closed()
        except TimeoutError:
            await self._session.end(self._lease)


class HostSession:
    """The connection to one host."""

    def __init__(
        self,
        host: Host,
        connection: asyncssh.SSHClientConnection,
        owner: str,
        timeouts: Timeouts,
        permit: Callable[[], None],
    ) -> None:
        self.host = host
        self._permit = permit
        self.leftovers = 0  # processes of an earlier run of this controller that were ended
        self._connection = connection
        self._timeouts = timeouts
        self._leases = leases_of(owner, host.name)
        self._run_id = secrets.token_hex(4)
        self._numbers = itertools.count()
        self._channels = asyncio.Semaphore(CHANNELS)

    @property
    def is_open(self) -> bool:
        """True while the connection is open, as far as is known."""
        return not self._connection.is_closed()

    async def lost(self) -> ProbeError:
        """Wait until the connection is lost; return the error for that."""
        await self._connection.wait_closed()
        return ProbeError(self.host.name, "unreachable", "the connection was lost")

    async def ask(self, command: Sequence[str], timeout_s: float | None = None) -> Output:
        """Run a short command that ends by itself.

        Raises ProbeError if the host does not answer in time or the connection is lost.
        """
        limit_s = timeout_s or self._timeouts.command_s
        async with self._channels, self.guarded(limit_s):
            return await self._run(command)

    async def measure(self, command: Sequence[str], limit_s: float) -> Output:
        """Run a tool to its end, under a lease; it ends soon after this process or the connection.

        Raises ProbeError if the tool is missing, did not end in time, or the connection is lost.

        Parameters
        ----------
        command : sequence of str
            The tool and its arguments.
        limit_s : float
            Time after which the host ends it.
        """
        async with self.server(command, limit_s) as running:
            output = await running.output(limit_s + self._timeouts.command_s)
        if output.status == LEASE_FAILED:
            problem = f"no file can be written there ({output.last_error_line})"
            raise ProbeError(self.host.name, "no-space", problem, "Free some space in /tmp.")
        if output.status in NOT_FOUND:
            raise missing_tool(self.host.name, command[0])
        if output.status in TIMED_OUT:
            problem = f"{command[0]} had not ended after {limit_s:.0f} s"
            raise ProbeError(self.host.name, "timeout", problem)
        return output

    @asynccontextmanager
    async def server(self, command: Sequence[str], limit_s: float) -> AsyncIterator[RemoteProcess]:
        """Run a tool, or its server, for as long as the block lasts, at most for a time.

        It ends by itself soon after this process or the connection does.
        """
        lease = f"{self._leases}{self._run_id}-{next(self._numbers):08d}"
        tether = limit_s > SILENCE_S
        async with self._channels, AsyncExitStack() as stack:
            self._permit()
            try:
                async with self.guarded(self._timeouts.command_s):
                    wrapped = tethered(SILENCE_S, command) if tether else command
                    line = remote_line(leased(lease, limit_s, wrapped))
                    process = await stack.enter_async_context(self._process(line, tether=tether))
                running = RemoteProcess(self, lease, process)
                yield running
            except BaseException:
                await self.end(lease)
                raise
            await running.stop()

    async def end(self, lease: str = "") -> int | None:
        """End the processes of one lease, or of all of this controller's on the host.

        Returns their number; None if the host did not confirm, in which case the next contact ends
        them.
        """
        if not self.is_open:
            return None

        async def confirmed() -> int | None:
            with suppress(ProbeError):
                async with self.guarded(5.0):
                    text = (await self._run(end_leases(lease or self._leases))).stdout.strip()
                return int(text) if text.isdigit() else None
            return None

        # Also when this task is being cancelled: the host must not be left with a process.
        ending = asyncio.create_task(confirmed())
        try:
            return await asyncio.shield(ending)
        except asyncio.CancelledError:
            with suppress(TimeoutError):
                await asyncio.wait_for(ending, 3.0)
            raise

    async def change(self, sysctls: Mapping[str, str]) -> None:
        """Change settings of the system until this controller leaves the host, or connects again.

        Raises ProbeError if this is not possible; settings changed by then are restored.
        """
        output = await self.ask(change_settings(self._leases, sysctls))
        if output.status != 0:
            await self.end()
            raise ProbeError(
                self.host.name,
                "no-space" if output.status == LEASE_FAILED else "setting",
                f"its settings can't be changed ({output.last_error_line})",
                "This needs root, by login or `sudo -n`; else leave --change-sysctls out.",
            )

    async def close(self) -> bool:
        """End all processes on the host and close the connection; return True if confirmed."""
        swept = self.is_open and await self.end() is not None
        self._connection.close()
        with suppress(TimeoutError, OSError, asyncssh.Error):
            await asyncio.wait_for(self._connection.wait_closed(), 2.0)
        return swept

    def abort(self) -> None:
        """Drop the connection of a host that does not answer."""
        self._connection.abort()

    # ---- inside -------------------------------------------------------------------------------

    async def _run(self, command: Sequence[str]) -> Output:
        async with self._process(remote_line(command), tether=False) as process:
            return await self.collected(process)

    @asynccontextmanager
    async def _process(
        self, line: str, *, tether: bool
    ) -> AsyncIterator[asyncssh.SSHClientProcess[bytes]]:
        """Run a process, with heartbeats if it is tethered; the channel closes with the block."""
        stdin = asyncssh.PIPE if tether else asyncssh.DEVNULL
        for pause_s in (*REOPEN_S, None):
            try:
                process = await self._connection.create_process(line, encoding=None, stdin=stdin)
                break
            except asyncssh.ChannelOpenError:
                if pause_s is None or not self.is_open:
                    raise
                await asyncio.sleep(pause_s)
        heartbeats = asyncio.create_task(_send_heartbeats(process)) if tether else None
        try:
            yield process
        finally:
            if heartbeats:
                heartbeats.cancel()
            process.close()

    async def collected(self, process: asyncssh.SSHClientProcess[bytes]) -> Output:
        """Read a process to its end, up to a limit; raises ConnectionLost if it is cut off."""
        stdout, stderr = await asyncio.gather(
            self._read(process.stdout), self._read(process.stderr)
        )
        await process.wait_closed()
        status = process.returncode
        if status is None and not self.is_open:
            raise asyncssh.ConnectionLost("it was closed before the command ended")
        return Output(-1 if status is None else status, stdout, stderr)

    async def _read(self, reader: asyncssh.SSHReader[bytes]) -> bytes:
        parts: list[bytes] = []
        size = 0
        while part := await reader.read(65_536):
            size += len(part)
            if size > MOST_OUTPUT_BYTES:
                problem = f"a command wrote over {MOST_OUTPUT_BYTES >> 20} MiB"
                raise ProbeError(self.host.name, "output", problem)
            parts.append(part)
        return b"".join(parts)

    @asynccontextmanager
    async def guarded(self, limit_s: float) -> AsyncIterator[None]:
        """Turn a timeout or a lost connection into a :class:`ProbeError` of this host."""
        try:
            async with asyncio.timeout(limit_s):
                yield
        except TimeoutError:
            problem = f"did not answer within {limit_s:.0f} s"
            remedy = "It may be hanging or overloaded."
            raise ProbeError(self.host.name, "unreachable", problem, remedy) from None
        except (asyncssh.Error, OSError) as error:
            problem = f"the connection was lost ({reason_of(error)})"
            raise ProbeError(self.host.name, "unreachable", problem) from None


async def _send_heartbeats(process: asyncssh.SSHClientProcess[bytes]) -> None:
    """Send heartbeats to a tethered process, until cancelled."""
    with suppress(OSError, asyncssh.Error):
        while True:
            process.stdin.write(b".")
            await asyncio.sleep(HEARTBEAT_S)
