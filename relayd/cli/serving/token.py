"""``relayd serve token``: the tokens of the service."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any

from planner.model.units import parse_duration_s
from relayd.cli.options import number, store_of, whole_number
from relayd.cli.output import print_rows, respond
from relayd.cli.text import page
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
    return respond(options, {**made.metadata(), "token": secret}, secret)


def listing(options: argparse.Namespace) -> int:
    """List all tokens, without their secrets."""
    with store_of(options, "read") as store:
        tokens = Tokens(store.database).list()
        series = store.samples.series_by_source()
    listed = [
        {**token.metadata(), "series": series.get(source_of_token(token.name), 0)}
        for token in tokens
    ]

    def date(field: str) -> Callable[[Mapping[str, Any]], str]:
        return lambda row: utc_date(row[field]) if row[field] is not None else "never"

    def counted(row: Mapping[str, Any]) -> str:
        most = row["max_series"]
        return str(row["series"]) if most is None else f"{row['series']} of {most}"

    return print_rows(
        options,
        "tokens",
        listed,
        shown=lambda: page().table_of(
            listed,
            "number | name | scopes | made | used | expires | requests/s=requests_per_s | "
            "series | state",
            left=True,
            scopes=lambda row: " ".join(row["scopes"]),
            made=date("created_at_s"),
            used=date("last_used_at_s"),
            expires=date("expires_at_s"),
            series=counted,
        ),
    )


def revoke(options: argparse.Namespace) -> int:
    """Revoke a token; services notice within seconds."""
    with store_of(options, "write") as store:
        token = Tokens(store.database).revoke(whole_number(options.number, "number"))
    said = f"Token {token.id} ({token.name}) is revoked."
    return respond(options, token.metadata(), said)
