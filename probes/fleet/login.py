"""Logging in over SSH: strict host keys, public keys only, nothing of the user's configuration.

No agent or display is forwarded, and keys are read in place.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

import asyncssh

from planner.model.errors import InputError
from probes.fleet.failures import ProbeError
from probes.fleet.hosts import Fleet, Host
from probes.fleet.remote import printable


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Times, in seconds, after which a host counts as silent."""

    connect_s: float = 10.0
    login_s: float = 15.0
    keepalive_s: float = 5.0
    keepalives: int = 3
    command_s: float = 20.0


async def connect(
    host: Host, timeouts: Timeouts, tunnel: asyncssh.SSHClientConnection | None
) -> asyncssh.SSHClientConnection:
    """Log in to a host; raises ProbeError with its remedy."""
    known = _known_hosts(host)
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
        problem = f"{host.user}@{host.host} was refused"
        remedy = "Check `user` and `key` in the fleet file and authorized_keys on the host."
        raise ProbeError(host.name, "login", problem, remedy) from None
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, FileNotFoundError) as error:
        problem = f"its key {host.key} can't be used ({reason_of(error)})"
        remedy = "Name a key without a passphrase, or leave `key` out to use the SSH agent."
        raise ProbeError(host.name, "login", problem, remedy) from None
    except TimeoutError:
        problem = f"no SSH login within {time.monotonic() - began_s:.0f} s"
        remedy = "The host is down, its sshd hangs, or a firewall drops the packets."
        raise ProbeError(host.name, "unreachable", problem, remedy) from None
    except (asyncssh.Error, OSError) as error:
        problem = f"no SSH connection to {host.host} port {host.port} ({reason_of(error)})"
        remedy = "Check that it runs, and the address and port in the fleet file."
        raise ProbeError(host.name, "unreachable", problem, remedy) from None


async def _unless_cancelled(
    connecting: Awaitable[asyncssh.SSHClientConnection],
) -> asyncssh.SSHClientConnection:
    """Wait for a connection without losing a cancellation.

    Before Python 3.12, ``asyncio.wait_for``, which asyncssh connects with, forgets one that comes
    together with the result (https://github.com/python/cpython/issues/86296): the task would go
    on for ever, and so would tasks that wait for its end.
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


def _known_hosts(host: Host) -> asyncssh.SSHKnownHosts:
    """Read the keys that a host may have; a file that is not there trusts none.

    Raises ProbeError if the file is there but can't be read.
    """
    try:
        text = host.known_hosts.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        text = ""
    except OSError as error:
        problem = f"{host.known_hosts} can't be read ({error.strerror})"
        raise ProbeError(host.name, "host-key", problem) from None
    try:
        return asyncssh.import_known_hosts(text)
    except ValueError as error:
        problem = f"{host.known_hosts} is damaged ({error})"
        raise ProbeError(host.name, "host-key", problem, "Mend the file.") from None


def _has_known_key(host: Host, known: asyncssh.SSHKnownHosts) -> bool:
    """Tell whether any key or authority is on record for a host."""
    keys, authorities, *_ = known.match(host.host, "", host.port)
    return bool(keys or authorities)


def _untrusted(host: Host, known: asyncssh.SSHKnownHosts) -> ProbeError:
    if _has_known_key(host, known):
        problem = "its host key is not the one on record: it was recreated, or someone intercepts"
        remedy = (
            f"If you know that it was recreated, remove its line from {host.known_hosts} and run "
            "`relayd measure fleet check --trust-new`."
        )
        return ProbeError(host.name, "host-key", problem, remedy)
    remedy = "`relayd measure fleet check --trust-new` shows it and asks."
    return ProbeError(host.name, "host-key", f"its host key is not in {host.known_hosts}", remedy)


def reason_of(error: BaseException) -> str:
    """Return the text of an SSH error in one line."""
    return printable(" ".join(str(error).split()) or type(error).__name__)


# ---- host keys that are not on record yet: fetched, shown, and stored after confirmation -------


async def offered_keys(fleet: Fleet, hosts: Sequence[Host]) -> dict[str, asyncssh.SSHKey]:
    """Return the keys that hosts without a key on record offer, by host name.

    A host whose key has changed is never among them.
    """
    timeouts = Timeouts()
    limit = asyncio.Semaphore(64)

    async def fetch(host: Host) -> asyncssh.SSHKey | None:
        async with limit:
            try:
                if _has_known_key(host, _known_hosts(host)):
                    return None
                tunnel = (
                    await connect(fleet.login(host.jump), timeouts, None) if host.jump else None
                )
                try:
                    async with asyncio.timeout(timeouts.connect_s + timeouts.login_s):
                        return await asyncssh.get_server_host_key(
                            host.host, host.port, tunnel=tunnel or (), config=None
                        )
                finally:
                    if tunnel:
                        tunnel.close()
            except (ProbeError, TimeoutError, OSError, asyncssh.Error):
                return None

    keys = await asyncio.gather(*(fetch(host) for host in hosts))
    return {host.name: key for host, key in zip(hosts, keys, strict=True) if key is not None}


def store_key(host: Host, key: asyncssh.SSHKey) -> None:
    """Add a host's key to its known_hosts file; raises InputError if the file can't be written."""
    name = host.host if host.port == 22 else f"[{host.host}]:{host.port}"
    line = f"{name} {key.export_public_key('openssh').decode().strip()}\n"
    try:
        host.known_hosts.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = os.open(host.known_hosts, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(number, "r+b") as file:
            content = file.read()
            if content and not content.endswith(b"\n"):
                line = "\n" + line
            file.write(line.encode())
    except OSError as error:
        problem = f"can't be written ({error.strerror})"
        remedy = "Make it writable, or name another file in the fleet file."
        raise InputError(
            "known_hosts", problem, value=str(host.known_hosts), remedy=remedy
        ) from None
