"""The commands that run the service and manage its tokens."""

from __future__ import annotations

import argparse
from typing import Any

from relayd.cli.parser import command, group, listing


def add_serving_commands(commands: Any) -> None:
    """Add the commands of the service."""
    _serve(command(commands, "serve", "relayd.cli.serving.serve:run", "answer questions over HTTP"))
    _mcp(
        command(
            commands, "mcp", "relayd.cli.serving.mcp:run", "answer questions of assistants (MCP)"
        )
    )
    _tokens(group(commands, "token", "manage the tokens of the service", "actions", "ACTION"))


def _serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", help="TOML with a table [serve]")
    where = parser.add_argument_group("where")
    where.add_argument("--host", help="address to listen at (default 127.0.0.1)")
    where.add_argument("--port", metavar="N", help="default 8080; 0 takes a free one")
    where.add_argument("--tls-cert", metavar="FILE", help="certificate, with its chain (PEM)")
    where.add_argument("--tls-key", metavar="FILE", help="its key (PEM)")
    where.add_argument(
        "--behind-proxy",
        metavar="NAME",
        help="name of a proxy with TLS in front; allows a public address without TLS",
    )
    where.add_argument(
        "--insecure-public", action="store_true", help="allow a public address without TLS"
    )
    where.add_argument(
        "--allowed-host",
        metavar="NAME",
        action="append",
        dest="allowed_hosts",
        help="a name by which the service is reached, beside localhost and addresses; repeatable",
    )
    how = parser.add_argument_group("how")
    how.add_argument("--no-auth", action="store_true", help="need no tokens; on loopback alone")
    how.add_argument(
        "--workers", metavar="N", help="processes for long questions (default: one for each core)"
    )
    how.add_argument("--fleet", metavar="FILE", help="the fleet file of campaigns")
    how.add_argument(
        "--check", action="store_true", help="only print the settings and every problem with them"
    )


def _mcp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        metavar="N",
        help="serve HTTP on this machine, with a token; 0 takes a free one "
        "(default: standard input and output)",
    )
    parser.add_argument("--fleet", metavar="FILE", help="the fleet file of forecasts")
    parser.add_argument(
        "--allow-reports",
        action="store_true",
        help="let assistants report transfers, too; otherwise they only read",
    )


def _tokens(actions: Any) -> None:
    create = command(
        actions, "create", "relayd.cli.serving.token:create", "create a token and print it once"
    )
    create.add_argument("name", help="who or what will use it")
    create.add_argument(
        "--scope",
        metavar="SCOPE",
        action="append",
        default=[],
        help="read, plan, ingest, probe or admin; repeatable (default read and plan)",
    )
    create.add_argument("--expires", metavar="TIME", help="from now, such as 90d (default: never)")
    create.add_argument(
        "--requests-per-s",
        metavar="N",
        help="that it may send; 0: no limit (default: as the service is set)",
    )
    create.add_argument(
        "--max-series",
        metavar="N",
        help="metrics of links that it may report; 0: no limit (default: as the service is set)",
    )
    listing(actions, "list", "relayd.cli.serving.token:listing", "list tokens")
    revoke = command(actions, "revoke", "relayd.cli.serving.token:revoke", "revoke a token")
    revoke.add_argument("number", help="as `relayd token list` shows it")
