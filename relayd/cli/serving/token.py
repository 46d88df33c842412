"""``relayd token``: the tokens of the service."""

from __future__ import annotations

import argparse
import json
import time

from planner.model.errors import InputError
from planner.model.units import parse_duration_s
from relayd.cli.options import store_location, whole_number
from relayd.cli.output import NOTHING, print_rows
from relayd.cli.text import left_table
from relayd.settings import load_settings
from relayd.store import Store, open_store
from relayd.store.opening import Mode
from relayd.store.samples.ingest import source_of_token
from relayd.store.tokens import Tokens
from relayd.times import utc_date

USUAL_SCOPES = ("read", "plan")


def create(options: argparse.Namespace) -> int:
    """Create a token and print it, the only time that it is shown."""
    expires_at_s = None
    if options.expires:
        expires_at_s = time.time() + parse_duration_s(options.expires, "--expires")
    scopes, most = options.scope or USUAL_SCOPES, options.max_series
    with _store(options, "create") as store:
        tokens = Tokens(store.database)
        secret = tokens.create(
            options.name,
            scopes,
            expires_at_s=expires_at_s,
            requests_per_s=_rate(options.requests_per_s),
            max_series=most and whole_number(most, "--max-series"),
        )
        made = tokens.list()[-1]
    if options.json:
        print(json.dumps({**made.metadata(), "token": secret}, indent=2))
    else:
        print(secret)
    return 0


def listing(options: argparse.Namespace) -> int:
    """List all tokens, without their secrets."""
    with _store(options, "read") as store:
        tokens = Tokens(store.database).list()
        series = store.samples.series_by_source()
    reported = [series.get(source_of_token(token.name), 0) for token in tokens]
    listed = [
        {**token.metadata(), "series": count} for token, count in zip(tokens, reported, strict=True)
    ]
    rows = [
        (
            str(token.id),
            token.name,
            " ".join(sorted(token.scopes)),
            _date(token.created_at_s),
            _date(token.last_used_at_s),
            _date(token.expires_at_s),
            "-" if token.requests_per_s is None else f"{token.requests_per_s:g}",
            str(count) if token.max_series is None else f"{count} of {token.max_series}",
            str(token.metadata()["state"]),
        )
        for token, count in zip(tokens, reported, strict=True)
    ]
    header = ("number", "name", "scopes", "made", "used", "expires", "requests/s", "series")
    return print_rows(
        options,
        "tokens",
        listed,
        shown=lambda: left_table((*header, "state"), rows) if rows else NOTHING,
    )


def revoke(options: argparse.Namespace) -> int:
    """Revoke a token; services notice within seconds."""
    with _store(options, "write") as store:
        token = Tokens(store.database).revoke(whole_number(options.number, "number"))
    if options.json:
        print(json.dumps(token.metadata(), indent=2))
    else:
        print(f"Token {token.id} ({token.name}) is revoked.")
    return 0


def _store(options: argparse.Namespace, mode: Mode) -> Store:
    path = store_location(options, load_settings())
    return open_store(path, mode=mode)


def _rate(written: str | None) -> float | None:
    if written is None:
        return None
    try:
        return float(written)
    except ValueError:
        raise InputError(
            "--requests-per-s", "is not a number", value=written, remedy="Write 20, or 0.5."
        ) from None


def _date(at_s: float | None) -> str:
    return "never" if at_s is None else utc_date(at_s)
