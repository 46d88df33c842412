"""``relayd serve mcp``: questions as tools of assistants."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import socket
import sys
from pathlib import Path

from planner.model.errors import InputError, not_installed
from relayd.cli.options import store_location, wan_of, whole_number
from relayd.mcp.tools import tools
from relayd.settings import load_settings
from relayd.store.tokens import VARIABLE


def run(options: argparse.Namespace) -> int:
    """Serve the program that started this one; with ``--port``, programs of this machine.

    Raises an InputError if a package is not installed, or the port can't be listened at.
    """
    try:
        from relayd.mcp.serving import PATH, serve_http, serve_stdio
    except ModuleNotFoundError as error:
        if error.name not in {"mcp", "mcp_types", "uvicorn"}:
            raise
        raise not_installed("mcp", "mcp", "serve assistants") from None
    settings = load_settings()
    fleet = Path(options.fleet) if options.fleet else settings.fleet
    wan, offered = wan_of(options), tools(store_location(options), fleet)
    if options.port is None:
        asyncio.run(serve_stdio(wan, offered))
        return 0
    port = whole_number(options.port, "--port")
    try:
        listening = socket.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        problem = f"can't be listened at ({error})"
        remedy = "Name a free one; 0 takes any."
        raise InputError("--port", problem, value=port, remedy=remedy) from None
    token = os.environ.get(VARIABLE) or secrets.token_urlsafe(32)
    with listening:
        where = f"http://127.0.0.1:{listening.getsockname()[1]}{PATH}"
        print(f"Listening at {where}", file=sys.stderr)
        if VARIABLE not in os.environ:
            print(f"Token of this run ({VARIABLE} sets one): {token}", file=sys.stderr)
        sys.stderr.flush()
        asyncio.run(serve_http(wan, offered, listening, token))
    return 0
