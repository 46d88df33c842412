"""Runs one command, and says what went wrong."""

from __future__ import annotations

import argparse
import errno
import os
import sys

from planner.model.errors import InputError, RelaydError
from relayd.cli.text import filled, safe_output
from relayd.cli.wording import worded, worded_json


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code.

    0 done, 2 bad input, 3 no feasible plan, 4 data missing or too old, 5 finished in part,
    1 our own fault.
    """
    with safe_output():
        return _run(arguments)


def _run(arguments: list[str]) -> int:
    options = None
    try:
        if not arguments:
            from relayd.cli.parser import introduction

            print(introduction())
            return 0
        from relayd.cli.parser import parse

        options = parse(arguments)
        code = options.run(options)
        sys.stdout.flush()  # here, where a closed pipe can still be told from a fault
    except RelaydError as error:
        renamed = getattr(options, "renamed", {}) | _named_elsewhere(options)
        about = error, getattr(options, "request", None), renamed
        as_json = getattr(options, "json", bool({"--json", "-j"} & {*arguments}))
        text = worded_json(*about) if as_json else f"relayd: {worded(*about)}"
        if sys.stderr.isatty() and not as_json:
            text = "\n".join(filled(line, stream=sys.stderr) for line in text.split("\n"))
        print(text, file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader of a pipe has had enough (`relayd links | head`): not an error.
        sys.stderr.close()
        return 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _drop_output()
        place = error.filename or "what was written to"
        print(f"relayd: {place}: the disk is full. Free some space.", file=sys.stderr)
        return InputError.exit_code
    except KeyboardInterrupt:
        print("relayd: interrupted", file=sys.stderr)
        return 130
    return int(code or 0)


def _named_elsewhere(options: argparse.Namespace | None) -> dict[str, str]:
    """Return the name of what says where the store is, if no option does."""
    if getattr(options, "db", None) or not os.environ.get("RELAYD_DB"):
        return {}
    return {"--db": "RELAYD_DB"}


def _drop_output() -> None:
    """Let what is left in the buffer of standard output go nowhere, or Python fails at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
