"""``relayd token``: the tokens of the service."""

from __future__ import annotations

import argparse
import json
import time

from planner.model.units import parse_duration_s
from relayd.cli.options import store_location, whole_number
from relayd.cli.text import left_table
from relayd.settings import load_settings
from relayd.store import Store, open_store
from relayd.store.opening import Mode
from relayd.store.tokens import Token, Tokens
from relayd.times import utc_date

USUAL_SCOPES = ("read", "plan")


def create(options: argparse.Namespace) -> int:
    """Create a token and print it, the only time that it is shown."""
    expires_at_s = None
    if options.expires:
        expires_at_s = time.time() + parse_duration_s(options.expires, "--expires")
    scopes = options.scope or USUAL_SCOPES
    with _store(options, "create") as store:
        tokens = Tokens(store.database)
        secret = tokens.create(options.name, scopes, expires_at_s=expires_at_s)
        made = tokens.list()[-1]
    if options.json:
        print(json.dumps({**_as_json(made), "token": secret}, indent=2))
    else:
        print(secret)
    return 0


def listing(options: argparse.Namespace) -> int:
    """List all tokens, without their secrets."""
    with _store(options, "read") as store:
        tokens = Tokens(store.database).list()
    if options.json:
        print(json.dumps({"tokens": [_as_json(token) for token in tokens]}, indent=2))
        return 0
    rows = [
        (
            str(token.id),
            token.name,
            " ".join(sorted(token.scopes)),
            _date(token.created_at_s),
            _date(token.expires_at_s),
            _state(token),
        )
        for token in tokens
    ]
    print(left_table(("number", "name", "scopes", "made", "expires", "state"), rows))
    return 0


def revoke(options: argparse.Namespace) -> int:
    """Revoke a token; services notice within seconds."""
    with _store(options, "write") as store:
        token = Tokens(store.database).revoke(whole_number(options.number, "number"))
    if options.json:
        print(json.dumps(_as_json(token), indent=2))
    else:
        print(f"Token {token.id} ({token.name}) is revoked.")
    return 0


def _store(options: argparse.Namespace, mode: Mode) -> Store:
    path = store_location(options, load_settings())
    return open_store(path, mode=mode)


def _as_json(token: Token) -> dict[str, object]:
    return {
        "number": token.id,
        "name": token.name,
        "scopes": sorted(token.scopes),
        "created_at_s": token.created_at_s,
        "expires_at_s": token.expires_at_s,
        "revoked_at_s": token.revoked_at_s,
        "state": _state(token),
    }


def _state(token: Token) -> str:
    if token.revoked_at_s is not None:
        return "revoked"
    return "valid" if token.is_valid(time.time()) else "expired"


def _date(at_s: float | None) -> str:
    return "never" if at_s is None else utc_date(at_s)
