"""The function that runs each command.

Modules are imported here, when their command is given: a service, a lab and documents of prices
take a while, and a plan waits for none of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeAlias

Handler: TypeAlias = Callable[[argparse.Namespace], int]


def run(options: argparse.Namespace) -> int:
    """Run the command that was given, and return its exit code."""
    if "question" in options:
        from relayd.cli.questions import answers

        return answers.run(options)
    return handler_of(options.command)(options)


def handler_of(command: str) -> Handler:
    """Return the function that runs a command that asks no question.

    Parameters
    ----------
    command : str
        Its words, such as ``data links``.

    Raises
    ------
    LookupError
        If there is none.
    """
    first, *rest = command.split()
    if first in ("import", "data"):
        return _of_data(rest)
    if first in ("probe", "measure"):
        return _of_measuring(rest)
    last = command.rpartition(" ")[2]
    if first == "transfers":
        from relayd.cli.data import following, transfers

        return {
            "list": transfers.listed,
            "show": transfers.shown,
            "begin": transfers.begin,
            "progress": transfers.progress,
            "end": transfers.end,
            "follow": following.follow,
        }[last]
    if command == "study backtest":
        from relayd.cli.data import backtest

        return backtest.run
    if first == "study":
        from relayd.cli.data import report

        return {"report": report.run, "series": report.series}[last]
    if command == "serve":
        from relayd.cli.serving import serve

        return serve.run
    if command == "serve mcp":
        from relayd.cli.serving import mcp

        return mcp.run
    if first == "serve":
        from relayd.cli.serving import token

        return {"create": token.create, "list": token.listing, "revoke": token.revoke}[last]
    if command == "help":
        from relayd.cli.help import explain

        return explain.run
    raise LookupError(command)


def _of_data(rest: list[str]) -> Handler:
    """Return the handler of ``import``, or of words after ``data``."""
    match rest:
        case []:
            from relayd.cli.data import importing

            return importing.run
        case ["matrix"]:
            from relayd.cli.data import matrix

            return matrix.run
        case ["export"]:
            from relayd.cli.data import exporting

            return exporting.run
        case ["doctor"]:
            from relayd.cli.help import doctor

            return doctor.run
        case ["samples", what]:
            from relayd.cli.data import samples

            listings = {
                "list": samples.batches,
                "quarantine": samples.apart,
                "decisions": samples.list_decisions,
                "accept": samples.run_on_quarantine,
                "reject": samples.run_on_quarantine,
            }
            return listings.get(what, samples.run_decision)  # retract, restore, confirm
        case ["store", what]:
            from relayd.cli.data import store

            return {
                "compact": store.compact,
                "rebuild": store.rebuild,
                "check": store.check,
                "backup": store.backup,
                "restore": store.restore,
                "changes": store.list_changes,
            }[what]
        case ["catalogue", "show"]:
            from relayd.cli.catalogue import showing

            return showing.run
        case ["catalogue", what]:
            from relayd.cli.catalogue import changing

            others = {"update": changing.update, "undo": changing.undo}
            return others.get(what, changing.run)  # diff, import
    from relayd.cli.data import listing

    return {"regions": listing.regions, "vm-types": listing.vm_types, "links": listing.links}[
        rest[0]
    ]


def _of_measuring(rest: list[str]) -> Handler:
    """Return the handler of ``probe``, or of words after ``measure``."""
    match rest:
        case []:
            from relayd.cli.measuring import probe

            return probe.run
        case ["verify"]:
            from relayd.cli.measuring import verify

            return verify.run
        case ["watch"]:
            from relayd.cli.measuring import watch

            return watch.run
        case ["fleet", what]:
            from relayd.cli.measuring import fleet

            return {"check": fleet.check, "caps": fleet.caps}[what]
    from relayd.cli.measuring import lab

    return {
        "up": lab.up,
        "down": lab.down,
        "status": lab.status,
        "exec": lab.execute,
        "host": lab.set_host,
        "link": lab.set_link,
        "clear": lab.clear,
    }[rest[-1]]
