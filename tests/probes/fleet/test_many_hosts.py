"""Many hosts: logins a few at a time, one connection each, little memory."""

from __future__ import annotations

import asyncio
import getpass
import tracemalloc
from pathlib import Path

import asyncssh
import pytest

from probes.fleet.failures import ProbeError
from probes.fleet.hosts import Fleet, Host
from probes.fleet.login import Timeouts
from probes.fleet.sessions import Sessions

_AT_ONCE = 12
_MOST_KIB = 400
"""Of a host, both ends of its connection included: they share this process."""


class _Server(asyncssh.SSHServer):
    """Counts the logins that are under way."""

    making: int = 0
    most: int = 0
    total: int = 0

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        _Server.making += 1
        _Server.total += 1
        _Server.most = max(_Server.most, _Server.making)
        self.done = False

    def auth_completed(self) -> None:
        self._settle()

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle()

    def _settle(self) -> None:
        if not self.done:
            self.done = True
            _Server.making -= 1


async def _answer(process: asyncssh.SSHServerProcess[str]) -> None:
    """Run what was asked by a real shell."""
    assert process.command
    child = await asyncio.create_subprocess_shell(
        process.command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    stdout, _ = await child.communicate()
    process.stdout.write(stdout.decode())
    process.exit(child.returncode or 0)


@pytest.mark.parametrize("count", [25, pytest.param(100, marks=pytest.mark.thorough)])
def test_many_hosts_are_logged_in_to_a_few_at_a_time(tmp_path: Path, count: int) -> None:
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    own = asyncssh.generate_private_key("ssh-ed25519")
    own.write_private_key(tmp_path / "id")
    (tmp_path / "id").chmod(0o600)
    own.write_public_key(tmp_path / "authorized")
    _Server.making = _Server.most = _Server.total = 0

    async def main() -> tuple[list[str], float, int]:
        async def listening() -> asyncssh.SSHAcceptor:
            return await asyncssh.listen(
                "127.0.0.1",
                0,
                server_factory=_Server,
                server_host_keys=[host_key],
                authorized_client_keys=str(tmp_path / "authorized"),
                process_factory=_answer,
            )

        servers = [await listening() for _ in range(count)]
        ports = [server.get_port() for server in servers]
        public = host_key.export_public_key().decode().strip()
        known = tmp_path / "known_hosts"
        known.write_text("".join(f"[127.0.0.1]:{port} {public}\n" for port in ports))
        hosts = {
            f"h{number}": Host(
                f"h{number}",
                f"aws:r{number}",
                "127.0.0.1",
                port,
                getpass.getuser(),
                tmp_path / "id",
                known,
            )
            for number, port in enumerate(ports)
        }
        # The last one is not there: it fails alone.
        servers[-1].close()
        await servers[-1].wait_closed()
        # Both ends are in this process, which may answer late on a busy machine.
        timeouts = Timeouts(connect_s=60, login_s=60, keepalive_s=60, command_s=120)
        async with Sessions(Fleet(hosts), "many", at_once=_AT_ONCE, timeouts=timeouts) as sessions:

            async def ask(name: str) -> str:
                try:
                    said = await (await sessions.session(name)).ask(["echo", name])
                except ProbeError as error:
                    return error.cause
                return said.stdout.decode().strip()

            tracemalloc.start()
            answers = await asyncio.gather(*(ask(name) for name in hosts))
            used_kib = tracemalloc.get_traced_memory()[0] / 1024
            tracemalloc.stop()
            again = await asyncio.gather(*(ask(name) for name in list(hosts)[:-1]))
            assert again == answers[:-1]
            made = _Server.total  # before it ends: hosts that are slow to clean up are met again
        for server in servers:
            server.close()
        return answers, used_kib, made

    answers, used_kib, made = asyncio.run(main())
    assert answers == [*(f"h{number}" for number in range(count - 1)), "unreachable"]
    assert 1 < _Server.most <= _AT_ONCE
    assert made == count - 1  # one connection a host, however often it is asked
    assert used_kib < count * _MOST_KIB
