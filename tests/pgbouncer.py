"""pgbouncer in front of a PostgreSQL server, in either of its modes."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import pytest

from tests.ports import free_port
from tests.postgresql import PostgresqlServer
from tests.waiting import eventually

PoolMode = Literal["session", "transaction"]


@contextmanager
def pgbouncer(server: PostgresqlServer, mode: PoolMode) -> Iterator[int]:
    """Run it with few connections to the server; the port that it listens at.

    Skips where it can't be had, which in CI is a failure.
    """
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        reason = "needs pgbouncer: apt-get install pgbouncer"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="relayd-pgbouncer-", dir="/tmp"))
    port = free_port()
    (folder / "users").write_text(f'"relayd" "{server.password}"\n')
    (folder / "pgbouncer.ini").write_text(
        f"""
[databases]
* = host=127.0.0.1 port={server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {folder}/users
pool_mode = {mode}
default_pool_size = 8
server_login_retry = 1
logfile = {folder}/log
"""
    )
    command = [program, str(folder / "pgbouncer.ini")]
    if os.geteuid() == 0:  # it refuses to run as root
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, "postgres")
        command = ["runuser", "-u", "postgres", "--", *command]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:

            def answers() -> bool:
                assert process.poll() is None, (folder / "log").read_text()
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    return True
                return False

            eventually(answers)
            yield port
        finally:
            process.terminate()
            process.wait()
            shutil.rmtree(folder)
