"""Host keys that are not on record yet: fetched, shown, and stored after confirmation."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

import asyncssh

from planner.model.errors import InputError
from probes.fleet.failures import ProbeError
from probes.fleet.hosts import Fleet, Host
from probes.fleet.login import Timeouts, connect, has_known_key, known_hosts


async def offered_keys(
    fleet: Fleet, hosts: Sequence[Host], timeouts: Timeouts | None = None
) -> dict[str, asyncssh.SSHKey]:
    """Return the keys that hosts without a key on record offer, by host name.

    A host whose key has changed is never among them.
    """
    timeouts = timeouts or Timeouts()
    limit = asyncio.Semaphore(64)

    async def fetch(host: Host) -> asyncssh.SSHKey | None:
        async with limit:
            try:
                if has_known_key(host, known_hosts(host)):
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
    """Add a host's key to its known_hosts file.

    Raises
    ------
    InputError
        If the file can't be written.
    """
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
        raise InputError(
            "known_hosts",
            f"can't be written ({error.strerror})",
            value=str(host.known_hosts),
            remedy="Make it writable, or name another file in the fleet file.",
        ) from None
