"""A real PostgreSQL server for tests: one a session, in a folder of its own, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.ports import free_port
from tests.waiting import eventually

# Settings as in production where tests depend on them: what is acknowledged is on disk.
_SETTINGS = {
    "listen_addresses": "'127.0.0.1'",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_connections": "60",
    "shared_buffers": "'64MB'",
    "logging_collector": "off",
    "timezone": "'Asia/Kolkata'",  # nobody's own: what depends on it would be noticed
}
_PASSWORD = "correct horse"


def _programs() -> Path | None:
    """Return the newest folder of Debian's server programs."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda path: float(path.parents[1].name),
    )
    return found[-1].parent if found else None


class PostgresqlServer:
    """One server with its data in a temporary folder.

    Attributes
    ----------
    port : int
        On 127.0.0.1, where a password is asked for; the socket in :attr:`folder` needs none.
    """

    password = _PASSWORD

    def __init__(self, folder: Path, programs: Path, user: str | None) -> None:
        self.folder = folder
        self._programs = programs
        self._as_user = ["runuser", "-u", user, "--"] if user else []
        self.port = free_port()
        self._names = (f"test_{number}" for number in count(1))
        self._templates: set[str] = set()

    def _run(self, program: str, *arguments: str) -> None:
        # Not a pipe: the server would hold it open.
        with (self.folder / "output").open("a") as output:
            done = subprocess.run(
                [*self._as_user, str(self._programs / program), *arguments],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        assert done.returncode == 0, (self.folder / "output").read_text()

    def create(self) -> None:
        """Make the data folder."""
        password = self.folder / "password"
        password.write_text(_PASSWORD)
        self._run(
            "initdb",
            "--pgdata=data",
            "--username=relayd",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
            f"--pwfile={password}",
        )
        settings = {**_SETTINGS, "port": self.port, "unix_socket_directories": f"'{self.folder}'"}
        if float(self._programs.parent.name) >= 14:
            settings["recovery_init_sync_method"] = "syncfs"  # quick after a crash
        with (self.folder / "data" / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())

    def start(self) -> None:
        """Start, and wait until connections are taken."""
        self._run("pg_ctl", "start", "--pgdata=data", "--log=log", "--wait", "--silent")

    def stop(self, mode: str = "immediate") -> None:
        """Stop; ``immediate`` is what a crash is."""
        self._run("pg_ctl", "stop", "--pgdata=data", f"--mode={mode}", "--silent")

    def restart(self, mode: str = "immediate") -> None:
        """Stop and start at once, as an administrator does."""
        self._run(
            "pg_ctl",
            "restart",
            "--pgdata=data",
            "--log=log",
            f"--mode={mode}",
            "--wait",
            "--silent",
        )

    def crash(self) -> None:
        """Kill the server with all its processes at once, as a loss of power does."""
        main = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        everyone = [main, *map(int, children)]
        for process in everyone:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        gone = [Path(f"/proc/{process}") for process in everyone]
        eventually(lambda: not any(folder.exists() for folder in gone), every_s=0.01)

    def url(self, database: str, *, over: str = "socket", **parameters: str) -> str:
        """Return the address of a database, over the ``socket`` or over ``tcp``."""
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items())
        if over == "tcp":
            place = f"relayd:{quote(_PASSWORD)}@127.0.0.1:{self.port}/{database}"
        else:
            place = f"relayd@/{database}?host={quote(str(self.folder), safe='')}&port={self.port}"
        return f"postgresql://{place}" + (f"{'&' if '?' in place else '?'}{query}" if query else "")

    def sql(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement as an administrator would."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    def new_database(self, template: str = "template0") -> str:
        """Create a database; return its name."""
        name = next(self._names)
        self.sql(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def drop_store(self, where: str) -> None:
        """Remove a store and what its log takes."""
        name = where.partition("@/")[2].partition("?")[0]
        self.sql(f"DROP DATABASE {name} WITH (FORCE)")
        self.sql("CHECKPOINT")

    def new_store(self) -> str:
        """Create a database with an empty store in it; return its address."""
        from relayd.store import open_store

        if "store" not in self._templates:
            self.sql("CREATE DATABASE store TEMPLATE template0")
            open_store(self.url("store"), mode="create").close()
            self._templates.add("store")
        return self.url(self.new_database("store"))


@contextmanager
def running_server() -> Iterator[PostgresqlServer]:
    """Run a server; skip where none can be had, which in CI is a failure."""
    programs = _programs()
    user = "postgres" if os.geteuid() == 0 else None
    reason = ""
    if programs is None:
        reason = "needs a PostgreSQL server: apt-get install postgresql"
    elif user:  # the server refuses to run as root
        try:
            pwd.getpwnam(user)
        except KeyError:
            reason = f"needs a user {user} to run PostgreSQL as"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        reason = "needs psycopg: pip install 'psycopg[binary]'"
    if reason or programs is None:
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    # The tests' own folders are closed to other users.
    folder = Path(tempfile.mkdtemp(prefix="relayd-postgresql-", dir="/tmp"))
    with _running_in(folder, programs, user) as server:
        yield server


@contextmanager
def server_on(folder: Path, settings: str) -> Iterator[PostgresqlServer]:
    """Run a server in a new folder, with further settings."""
    programs = _programs()
    assert programs, "needs a PostgreSQL server"
    folder.mkdir()
    with _running_in(
        folder, programs, "postgres" if os.geteuid() == 0 else None, settings
    ) as found:
        yield found


@contextmanager
def _running_in(
    folder: Path, programs: Path, user: str | None, settings: str = ""
) -> Iterator[PostgresqlServer]:
    try:
        if user:
            shutil.chown(folder, user)
        server = PostgresqlServer(folder, programs, user)
        server.create()
        with (folder / "data" / "postgresql.conf").open("a") as file:
            file.write(settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)
