"""``relayd token``: the tokens of the service."""

from __future__ import annotations

import argparse
import json
import time

from planner.model.units import parse_duration_s
from relayd.cli.options import number, store_of, whole_number
from relayd.cli.output import print_rows
from relayd.cli.text import left_table
from relayd.store.samples.ingest import source_of_token
from relayd.store.tokens import Tokens
from relayd.times import utc_date

USUAL_SCOPES = ("read", "plan")


def create(options: argparse.Namespace) -> int:
    """Create a token and print it, the only time that it is shown."""
    expires_at_s = None
    if options.expires:
        expires_at_s = time.time() + parse_duration_s(options.expires, "--expires")
    rate, most = options.requests_per_s, options.max_series
    with store_of(options, "create") as store:
        tokens = Tokens(store.database)
        secret = tokens.create(
            options.name,
            options.scope or USUAL_SCOPES,
            expires_at_s=expires_at_s,
            requests_per_s=None if rate is None else number(rate, "--requests-per-s"),
            max_series=most and whole_number(most, "--max-series"),
        )
        made = tokens.list()[-1]
    print(json.dumps({**made.metadata(), "token": secret}, indent=2) if options.json else secret)
    return 0


def listing(options: argparse.Namespace) -> int:
    """List all tokens, without their secrets."""
    with store_of(options, "read") as store:
        tokens = Tokens(store.database).list()
        series = store.samples.series_by_source()
    counts = [series.get(source_of_token(token.name), 0) for token in tokens]
    listed = [
        {**token.metadata(), "series": count} for token, count in zip(tokens, counts, strict=True)
    ]
    rows = [
        (
            str(token.id),
            token.name,
            " ".join(sorted(token.scopes)),
            *map(_date, (token.created_at_s, token.last_used_at_s, token.expires_at_s)),
            "-" if token.requests_per_s is None else f"{token.requests_per_s:g}",
            str(count) if token.max_series is None else f"{count} of {token.max_series}",
            str(token.metadata()["state"]),
        )
        for token, count in zip(tokens, counts, strict=True)
    ]
    header = ("number", "name", "scopes", "made", "used", "expires", "requests/s", "series")
    shown = (*header, "state")
    return print_rows(options, "tokens", listed, shown=lambda: left_table(shown, rows))


def revoke(options: argparse.Namespace) -> int:
    """Revoke a token; services notice within seconds."""
    with store_of(options, "write") as store:
        token = Tokens(store.database).revoke(whole_number(options.number, "number"))
    if options.json:
        print(json.dumps(token.metadata(), indent=2))
    else:
        print(f"Token {token.id} ({token.name}) is revoked.")
    return 0


def _date(at_s: float | None) -> str:
    return "never" if at_s is None else utc_date(at_s)
