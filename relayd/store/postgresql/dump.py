"""Copies of a PostgreSQL store by ``pg_dump`` and ``pg_restore``, which come with the server."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from psycopg.conninfo import make_conninfo

from planner.model.errors import InputError
from relayd.store.failures import failure
from relayd.store.location import Address
from relayd.store.opening import Store, open_store
from relayd.store.postgresql.connecting import parameters_of
from relayd.store.postgresql.database import MARK, PostgresqlDatabase

_SCHEMA = "SELECT CAST(current_schema() AS text), current_setting('server_version_num')"


def dump(database: PostgresqlDatabase, target: Path) -> None:
    """Write the schema of a store into a file."""
    name, server = database.row(_SCHEMA)
    _refuse_older(database.address, "pg_dump", int(server) // 10_000)
    command = ["--format=custom", "--no-owner", "--no-privileges", f"--file={target}"]
    _run(database.address, "pg_dump", [*command, f"--schema={_pattern(name)}"])


def restore(source: Path, address: Address, refuse_used: Callable[[Store], None]) -> None:
    """Fill the schema that an address leads to with that of a dump, in one transaction."""
    listed = _run(address, "pg_restore", ["--list", str(source)], connected=False)
    if MARK not in listed:
        raise InputError(
            "FILE",
            "is no backup of a store",
            value=str(source),
            remedy="Name a file that `relayd store backup` wrote.",
        )
    # To its end, so that a file that is cut off or damaged is noticed before anything is changed.
    _run(address, "pg_restore", ["--file=/dev/null", str(source)], connected=False)
    with open_store(address, mode="create") as store:
        refuse_used(store)
        name, server = store.database.row(_SCHEMA)
    if f" {name} " not in listed:
        raise failure(
            address,
            f"leads to the schema {name!r}, and the backup is of another",
            "Name that one: ?options=-c%20search_path%3DNAME.",
        )
    _refuse_older(address, "pg_restore", int(server) // 10_000)
    options = ["--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"]
    options += ["--clean", "--if-exists", f"--schema={name}"]
    _run(address, "pg_restore", [*options, str(source)])


def _refuse_older(address: Address, program: str, server: int) -> None:
    found = re.search(r"(\d+)", _run(address, program, ["--version"], connected=False))
    if found and int(found[1]) < server:
        raise failure(
            address,
            f"runs PostgreSQL {server}, and {program} here is of {found[1]}",
            f"Install the programs of PostgreSQL {server} or newer, first in PATH.",
        )


def _pattern(name: str) -> str:
    """Return a schema's name as a pattern that fits it alone."""
    return '"' + name.replace('"', '""') + '"'


def _run(
    address: Address, program: str, arguments: Sequence[str], *, connected: bool = True
) -> str:
    """Run a program and return what it printed.

    The password goes by the environment: everybody may read command lines.
    """
    environment = dict(os.environ)
    if connected:
        parameters = parameters_of(address)
        if password := parameters.pop("password", None):
            environment["PGPASSWORD"] = str(password)
        arguments = [f"--dbname={make_conninfo(**parameters)}", *arguments]
    try:
        done = subprocess.run(  # noqa: S603
            [program, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise failure(
            address,
            f"needs the program {program}: {error.strerror}",
            "Install PostgreSQL's client programs (Debian: postgresql-client).",
        ) from None
    if done.returncode:
        said = " ".join(done.stderr.split())[:300]
        raise failure(address, f"was not read or written by {program}: {said}", "Nothing was kept.")
    return done.stdout
