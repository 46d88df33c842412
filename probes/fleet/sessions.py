"""SSH to the hosts of a fleet: one connection each, strict host keys, arguments and no shell text.

Nothing of a user's SSH configuration is read, no agent or display is forwarded, and keys are used
where they lie. A connection that is lost is made anew at the next use; what the lost one left
running on its host is ended first.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from types import TracebackType

import asyncssh

from probes.fleet.failures import ProbeError
from probes.fleet.hosts import Fleet, Host
from probes.fleet.remote import (
    LEASE_FAILED,
    NOT_FOUND,
    TIMED_OUT,
    change_settings,
    end_leases,
    leased,
    leases_of,
    remote_line,
    tethered,
)

MOST_OUTPUT_BYTES = 32 * 2**20
# OpenSSH lets a connection have ten channels (MaxSessions); some are kept for ending processes.
CHANNELS = 8
START_S = 10.0
"""Within which a server must listen or end."""
BEAT_S, SILENCE_S = 2.0, 10
"""How often a tethered process hears that its controller is there, and how long it goes without."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait, in seconds, before a host counts as silent."""

    connect_s: float = 10.0
    login_s: float = 15.0
    keepalive_s: float = 5.0
    keepalives: int = 3
    command_s: float = 20.0


@dataclass(frozen=True, slots=True)
class Output:
    """What a command said.

    Attributes
    ----------
    status : int
        Exit code; negative if it ended by a signal.
    """

    status: int
    stdout: bytes
    stderr: bytes

    @property
    def last_words(self) -> str:
        """The last line that it wrote to standard error, for messages."""
        lines = self.stderr.decode(errors="replace").strip().splitlines()
        return _printable(lines[-1]) if lines else ""

    @property
    def words(self) -> str:
        """All that it wrote to standard error, as one line: some end with a mere "exiting"."""
        return _printable(" ".join(self.stderr.decode(errors="replace").split()))


class RemoteProcess:
    """A process on a host that was begun and is to be ended: a tool's server."""

    def __init__(
        self, session: HostSession, lease: str, process: asyncssh.SSHClientProcess[bytes]
    ) -> None:
        self._session = session
        self._lease = lease
        self._process = process

    async def line_with(self, words: bytes) -> bool:
        """Wait for a line of output with these words; False if the output ends without."""
        async with self._session.guarded(START_S):
            for _ in range(100):
                line = await self._process.stdout.readline()
                if not line:
                    return False
                if words in line:
                    return True
        return False

    async def output(self) -> Output:
        """Wait for the end and return what it has said since."""
        async with self._session.guarded(START_S):
            return await self._session.collected(self._process)

    async def stop(self, grace_s: float = 1.0) -> None:
        """Wait briefly for it to end by itself, then end it by its process id."""
        try:
            async with asyncio.timeout(grace_s):
                await self._process.wait_closed()
        except TimeoutError:
            await self._session.end(self._lease)
        finally:
            self._process.close()


class HostSession:
    """The connection to one host."""

    def __init__(
        self, host: Host, connection: asyncssh.SSHClientConnection, owner: str, timeouts: Timeouts
    ) -> None:
        self.host = host
        self.leftovers = 0
        self._connection = connection
        self._patience = timeouts
        self._leases = leases_of(owner, host.name)
        self._run_id = secrets.token_hex(4)
        self._numbers = itertools.count()
        self._channels = asyncio.Semaphore(CHANNELS)

    @property
    def is_open(self) -> bool:
        """Whether the connection still stands, as far as is known."""
        return not self._connection.is_closed()

    async def ask(self, command: Sequence[str], timeout_s: float | None = None) -> Output:
        """Run a short command that ends by itself.

        Raises
        ------
        ProbeError
            If the host does not answer in time or the connection is lost.
        """
        limit_s = timeout_s or self._patience.command_s
        async with self._channels, self.guarded(limit_s):
            return await self._run(command)

    async def measure(
        self, command: Sequence[str], limit_s: float, *, tether: bool = False
    ) -> Output:
        """Run a tool to its end, under a lease.

        Parameters
        ----------
        command : sequence of str
            The tool and its arguments.
        limit_s : float
            How long it may take; the host ends it then.
        tether : bool
            Whether it is to end by itself soon after this process or the connection does.

        Raises
        ------
        ProbeError
            If the tool is missing, did not end in time, or the connection is lost.
        """
        lease = self._new_lease()
        async with self._channels:
            try:
                async with self.guarded(limit_s + self._patience.command_s):
                    wrapped = tethered(SILENCE_S, command) if tether else command
                    output = await self._run(leased(lease, limit_s, wrapped), tether=tether)
            except BaseException:
                await self.end(lease)
                raise
        return self._checked(command[0], output, limit_s)

    @asynccontextmanager
    async def server(
        self, command: Sequence[str], limit_s: float, *, tether: bool = False
    ) -> AsyncIterator[RemoteProcess]:
        """Run a tool's server for as long as the block lasts, at most for a time.

        Parameters
        ----------
        tether : bool
            Whether it is to end by itself soon after this process or the connection does.
        """
        lease = self._new_lease()
        async with self._channels:
            running: RemoteProcess | None = None
            beating: asyncio.Task[None] | None = None
            try:
                async with self.guarded(self._patience.command_s):
                    wrapped = tethered(SILENCE_S, command) if tether else command
                    line = remote_line(leased(lease, limit_s, wrapped))
                    process = await self._process(line, tether=tether)
                    running = RemoteProcess(self, lease, process)
                if tether:
                    beating = asyncio.create_task(_beat(process))
                yield running
            except BaseException:
                await self.end(lease)
                if running:
                    running._process.close()
                raise
            finally:
                if beating:
                    beating.cancel()
            await running.stop()

    async def end(self, lease: str = "") -> int:
        """End what is left of one lease, or of all of this controller's on the host."""
        if not self.is_open:
            return 0  # at the next contact
        # Also when this task is being cancelled: the host must not be left with a process.
        ending = asyncio.ensure_future(self._end(lease or self._leases))
        try:
            return await asyncio.shield(ending)
        except asyncio.CancelledError:
            with suppress(TimeoutError, ProbeError):
                await asyncio.wait_for(ending, 3.0)
            raise

    async def _end(self, lease: str) -> int:
        try:
            async with self.guarded(5.0):
                output = await self._run(end_leases(lease))
        except ProbeError:
            return 0
        text = output.stdout.strip()
        return int(text) if text.isdigit() else 0

    async def change(self, sysctls: Mapping[str, str]) -> None:
        """Change settings of the system until this controller leaves the host, or meets it again.

        Raises
        ------
        ProbeError
            If this is not possible; what was changed by then is restored.
        """
        output = await self.ask(change_settings(self._leases, sysctls))
        if output.status != 0:
            await self.end()
            raise ProbeError(
                self.host.name,
                "no-space" if output.status == LEASE_FAILED else "setting",
                f"its settings can't be changed ({output.last_words})",
                "This needs root, by login or `sudo -n`; else leave --change-sysctls out.",
            )

    async def sweep(self) -> None:
        """End what an earlier run of this controller has left on the host."""
        self.leftovers += await self.end()

    async def close(self) -> None:
        """Leave nothing on the host and close the connection."""
        if self.is_open:
            with suppress(ProbeError):
                await self.end()
        self._connection.close()
        with suppress(TimeoutError, OSError, asyncssh.Error):
            await asyncio.wait_for(self._connection.wait_closed(), 2.0)

    def abort(self) -> None:
        """Drop the connection of a host that does not answer."""
        self._connection.abort()

    # ---- inside -------------------------------------------------------------------------------

    def _new_lease(self) -> str:
        return f"{self._leases}{self._run_id}-{next(self._numbers):08d}"

    async def _run(self, command: Sequence[str], *, tether: bool = False) -> Output:
        process = await self._process(remote_line(command), tether=tether)
        beating = asyncio.create_task(_beat(process)) if tether else None
        try:
            return await self.collected(process)
        finally:
            if beating:
                beating.cancel()
            process.close()

    async def _process(self, line: str, *, tether: bool) -> asyncssh.SSHClientProcess[bytes]:
        stdin = asyncssh.PIPE if tether else asyncssh.DEVNULL
        return await self._connection.create_process(line, encoding=None, stdin=stdin)

    async def collected(self, process: asyncssh.SSHClientProcess[bytes]) -> Output:
        """Read a process to its end; a host that says too much is not listened to."""
        stdout, stderr = await asyncio.gather(
            self._read(process.stdout), self._read(process.stderr)
        )
        await process.wait_closed()
        status = process.returncode
        return Output(-1 if status is None else status, stdout, stderr)

    async def _read(self, reader: asyncssh.SSHReader[bytes]) -> bytes:
        parts: list[bytes] = []
        size = 0
        while part := await reader.read(65_536):
            size += len(part)
            if size > MOST_OUTPUT_BYTES:
                raise ProbeError(
                    self.host.name, "output", f"a command wrote over {MOST_OUTPUT_BYTES >> 20} MiB"
                )
            parts.append(part)
        return b"".join(parts)

    @asynccontextmanager
    async def guarded(self, limit_s: float) -> AsyncIterator[None]:
        """Turn a silence or a loss into a :class:`ProbeError` of this host."""
        try:
            async with asyncio.timeout(limit_s):
                yield
        except TimeoutError:
            raise ProbeError(
                self.host.name,
                "unreachable",
                f"did not answer within {limit_s:.0f} s",
                "It may be hanging or overloaded.",
            ) from None
        except (asyncssh.Error, OSError) as error:
            raise ProbeError(
                self.host.name, "unreachable", f"the connection was lost ({_reason(error)})"
            ) from None

    def _checked(self, tool: str, output: Output, limit_s: float) -> Output:
        if output.status == LEASE_FAILED:
            raise ProbeError(
                self.host.name,
                "no-space",
                f"no file can be written there ({output.last_words})",
                "Free some space in /tmp.",
            )
        if output.status in NOT_FOUND:
            raise ProbeError(
                self.host.name,
                "missing-tool",
                f"{tool} is not there or can't be run",
                "`relayd fleet check --install-tools` installs what is missing.",
            )
        if output.status in TIMED_OUT:
            raise ProbeError(
                self.host.name, "timeout", f"{tool} had not ended after {limit_s:.0f} s"
            )
        return output


async def _beat(process: asyncssh.SSHClientProcess[bytes]) -> None:
    """Tell a tethered process that its controller is there, until cancelled."""
    with suppress(OSError, asyncssh.Error):
        while True:
            process.stdin.write(b".")
            await asyncio.sleep(BEAT_S)


class Sessions:
    """Connections to hosts of a fleet, made at first use.

    Parameters
    ----------
    fleet : Fleet
    owner : str
        Names this controller for good, so that a later run finds what this one leaves.
    at_once : int
        How many connections may be in the making at a time.
    sysctls : mapping
        Settings that hosts are to have for as long as they are connected to.
    """

    def __init__(
        self,
        fleet: Fleet,
        owner: str,
        *,
        at_once: int = 64,
        timeouts: Timeouts | None = None,
        on_contact: Callable[[str, int], None] | None = None,
        sysctls: Mapping[str, str] = {},
    ) -> None:
        self.fleet = fleet
        self._owner = owner
        self._patience = timeouts or Timeouts()
        self._making = asyncio.Semaphore(at_once)
        self._sessions: dict[str, HostSession] = {}
        self._jumps: dict[str, asyncssh.SSHClientConnection] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._on_contact = on_contact
        self._sysctls = sysctls

    async def __aenter__(self) -> Sessions:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.gather(*(s.close() for s in self._sessions.values()), return_exceptions=True)
        for jump in self._jumps.values():
            jump.close()
        for jump in self._jumps.values():
            with suppress(TimeoutError, OSError, asyncssh.Error):
                await asyncio.wait_for(jump.wait_closed(), 2.0)

    async def session(self, name: str) -> HostSession:
        """Return the session with a host, connecting if there is none that stands.

        Raises
        ------
        ProbeError
            If the host can't be reached, is not the one it was, or refuses the login.
        """
        async with self._locks.setdefault(name, asyncio.Lock()):
            found = self._sessions.get(name)
            if found is not None and found.is_open:
                return found
            host = self.fleet[name]
            tunnel = await self._jump(host.jump) if host.jump else None
            async with self._making:
                connection = await connect(host, self._patience, tunnel)
            session = HostSession(host, connection, self._owner, self._patience)
            try:
                await session.sweep()
                if self._sysctls:
                    await session.change(self._sysctls)
            except BaseException:
                await session.close()
                raise
            if self._on_contact:
                self._on_contact(name, session.leftovers)
            self._sessions[name] = session
            return session

    def forget(self, name: str) -> None:
        """Drop the connection to a host that does not answer, to make a new one at next use."""
        if session := self._sessions.pop(name, None):
            session.abort()

    async def _jump(self, name: str) -> asyncssh.SSHClientConnection:
        async with self._locks.setdefault(f"jump {name}", asyncio.Lock()):
            found = self._jumps.get(name)
            if found is None or found.is_closed():
                found = await connect(self.fleet.login(name), self._patience, None)
                self._jumps[name] = found
            return found


async def connect(
    host: Host, timeouts: Timeouts, tunnel: asyncssh.SSHClientConnection | None
) -> asyncssh.SSHClientConnection:
    """Log in to a host.

    Raises
    ------
    ProbeError
        With what to do about it.
    """
    known = known_hosts(host)
    began_s = time.monotonic()
    try:
        async with asyncio.timeout(timeouts.connect_s + timeouts.login_s):
            return await _unless_cancelled(
                asyncssh.connect(
                    host.host,
                    host.port,
                    username=host.user,
                    client_keys=[str(host.key)] if host.key else (),
                    agent_path=None if host.key else os.environ.get("SSH_AUTH_SOCK"),
                    known_hosts=known,
                    config=None,
                    tunnel=tunnel or (),
                    agent_forwarding=False,
                    x11_forwarding=False,
                    gss_auth=False,
                    gss_kex=False,
                    gss_delegate_creds=False,
                    password_auth=False,
                    kbdint_auth=False,
                    host_based_auth=False,
                    preferred_auth="publickey",
                    ignore_encrypted=host.key is None,
                    connect_timeout=timeouts.connect_s,
                    login_timeout=timeouts.login_s,
                    keepalive_interval=timeouts.keepalive_s,
                    keepalive_count_max=timeouts.keepalives,
                )
            )
    except asyncssh.HostKeyNotVerifiable:
        raise _untrusted(host, known) from None
    except asyncssh.PermissionDenied:
        raise ProbeError(
            host.name,
            "login",
            f"{host.user}@{host.host} was refused",
            "Check `user` and `key` in the fleet file and authorized_keys on the host.",
        ) from None
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, FileNotFoundError) as error:
        raise ProbeError(
            host.name,
            "login",
            f"its key {host.key} can't be used ({_reason(error)})",
            "Name a key without a passphrase, or leave `key` out to use the SSH agent.",
        ) from None
    except TimeoutError:
        waited_s = time.monotonic() - began_s
        raise ProbeError(
            host.name,
            "unreachable",
            f"no SSH login within {waited_s:.0f} s",
            "The host is down, its sshd hangs, or a firewall drops the packets.",
        ) from None
    except (asyncssh.Error, OSError) as error:
        raise ProbeError(
            host.name,
            "unreachable",
            f"no SSH connection to {host.host} port {host.port} ({_reason(error)})",
            "Check that it runs, and the address and port in the fleet file.",
        ) from None


async def _unless_cancelled(
    connecting: Awaitable[asyncssh.SSHClientConnection],
) -> asyncssh.SSHClientConnection:
    """Wait for a connection and let no cancellation get lost in that.

    Before Python 3.12, ``asyncio.wait_for``, which asyncssh connects with, forgets one that comes
    together with the result (https://github.com/python/cpython/issues/86296): the task would go
    on for ever, and who waits for its end, too.
    """
    task = asyncio.current_task()
    assert task
    before, connection = task.cancelling(), None
    try:
        connection = await connecting
        return connection
    finally:
        if task.cancelling() > before:
            if connection is not None:
                connection.abort()
            raise asyncio.CancelledError


def known_hosts(host: Host) -> asyncssh.SSHKnownHosts:
    """Read the keys that a host may have; a file that is not there trusts no one.

    Raises
    ------
    ProbeError
        If the file is there but can't be read.
    """
    try:
        text = host.known_hosts.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        text = ""
    except OSError as error:
        raise ProbeError(
            host.name, "host-key", f"{host.known_hosts} can't be read ({error.strerror})"
        ) from None
    try:
        return asyncssh.import_known_hosts(text)
    except ValueError as error:
        raise ProbeError(
            host.name, "host-key", f"{host.known_hosts} is damaged ({error})", "Mend the file."
        ) from None


def has_known_key(host: Host, known: asyncssh.SSHKnownHosts) -> bool:
    """Whether any key or authority is on record for a host."""
    keys, authorities, *_ = known.match(host.host, "", host.port)
    return bool(keys or authorities)


def _untrusted(host: Host, known: asyncssh.SSHKnownHosts) -> ProbeError:
    if has_known_key(host, known):
        return ProbeError(
            host.name,
            "host-key",
            "its host key is not the one on record: it was recreated, or someone stands in between",
            f"If you know that it was recreated, remove its line from {host.known_hosts} and run "
            "`relayd fleet check --trust-new`.",
        )
    return ProbeError(
        host.name,
        "host-key",
        f"its host key is not in {host.known_hosts}",
        "`relayd fleet check --trust-new` shows it and asks.",
    )


def _reason(error: BaseException) -> str:
    return _printable(" ".join(str(error).split()) or type(error).__name__)


def _printable(text: str) -> str:
    """Return what a host or a library said, fit for a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)[:200]
