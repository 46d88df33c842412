"""``relayd serve``: answers questions over HTTP until it is stopped."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from planner.model.errors import RelaydError
from probes.fleet.file import load_fleet
from relayd.catalogue.loading import load_catalogue
from relayd.cli.options import catalogue_files, store_location
from relayd.http.app import serve
from relayd.http.settings import ServiceSettings, load_service_settings
from relayd.store import Location, open_store
from relayd.store.tokens import FirstToken, Token, Tokens

OPTIONS = {"config", "host", "port", "insecure_public", "tls_cert", "tls_key", "allowed_hosts"}
OPTIONS |= {"behind_proxy", "no_auth", "workers", "fleet"}


def run(options: argparse.Namespace) -> int:
    """Check the settings, then serve."""
    # What is not given leaves the choice to the environment and the file.
    given = {
        name: value
        for name, value in vars(options).items()
        if name in OPTIONS and value not in (None, False, [])
    }
    settings = load_service_settings(given)
    db, catalogues = store_location(options), tuple(catalogue_files(options))
    if options.check:
        return _check(settings, db, catalogues)

    def say_where(url: str) -> None:
        print(f"relayd serves at {url} (documentation: {url}/docs)", flush=True)

    serve(settings, db, catalogues, say_where, _show_token)
    return 0


def _show_token(first: FirstToken, url: str) -> None:
    """Print instructions for the token of a first start; the token itself on a terminal alone.

    Elsewhere standard error is a journal or a log, which others read.
    """
    taken = "commands and clients of this user on this machine take it from there."
    if not first.is_new:
        told = f"the admin token in {first.path} is valid here, too; {taken}"
    elif sys.stderr.isatty():
        kept = f"kept in {first.path}" if first.path else "kept nowhere: copy it now"
        told = (
            "requests need a token. This one may do all:\n"
            f"  export RELAYD_TOKEN={first.secret}\n"
            f"It is {kept}. The dashboard asks for it, or opens with it:\n"
            f"  {url}/#token={first.secret}\n`relayd serve token create` makes others."
        )
    elif first.path:
        told = (
            f"requests need a token. One that may do all is in {first.path}, which only this user "
            f"can read; {taken}"
        )
    else:
        told = "requests need a token. Make one: `relayd serve token create NAME --scope admin`."
    print(f"relayd: {told}", file=sys.stderr, flush=True)


def _check(settings: ServiceSettings, db: Location, catalogues: tuple[Path, ...]) -> int:
    """Print the effective settings, and every problem with them on standard error."""
    there = not isinstance(db, Path) or db.exists()
    print(f"# store: {db}{'' if there else ' (will be made)'}")
    print(settings.as_toml())
    problems: list[RelaydError] = list(settings.problems())

    @contextmanager
    def looking() -> Iterator[None]:
        try:
            yield
        except RelaydError as error:
            problems.append(error)

    tokens: list[Token] = []
    with looking():
        load_catalogue(catalogues)
    if there:
        with looking(), open_store(db, mode="write") as store:
            tokens = Tokens(store.database).list()
    if untrusted := settings.tokens_problem(tokens):
        problems.append(untrusted)
    if settings.fleet and not problems:
        with looking():
            load_fleet(settings.fleet)
    for problem in problems:
        print(f"relayd: {problem}", file=sys.stderr)
    return problems[0].exit_code if problems else 0
