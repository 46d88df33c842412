"""Runs one command, and says what went wrong."""

from __future__ import annotations

import argparse
import errno
import json
import os
import re
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from planner.fields.specified import Specified, fields_of
from planner.model.errors import InputError, RelaydError
from relayd.cli.commands import introduction, parse
from relayd.cli.text import filled, safe_output


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
            print(introduction())
            return 0
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


Renamed: TypeAlias = Mapping[str, str]
"""Name of a field to what its option is called by a command."""
NONE: Renamed = MappingProxyType({})


def worded(error: RelaydError, request: type[Specified] | None, renamed: Renamed = NONE) -> str:
    """Return what went wrong, with options in place of the names of a request's fields.

    An error begins with the field's name; a remedy has other fields' names between backticks.
    """
    text, options = str(error), _option_names(request, renamed)
    if isinstance(error, InputError):
        text = _field(error.field, options) + text[len(error.field) :]
    return _remedy(text, options)


def worded_json(
    error: RelaydError, request: type[Specified] | None, renamed: Renamed = NONE
) -> str:
    """Return what went wrong as a JSON object under ``error``, worded alike.

    It has ``exit_code`` and ``detail``, and of bad input ``field``, ``problem``, ``value`` and
    ``remedy``; of an unknown or ambiguous region also ``near``.
    """
    found: dict[str, object] = {
        "exit_code": error.exit_code,
        "detail": worded(error, request, renamed),
    }
    if isinstance(error, InputError):
        options = _option_names(request, renamed)
        found |= {
            "field": _field(error.field, options),
            "problem": error.problem,
            "value": error.value,
            "remedy": error.remedy and _remedy(error.remedy, options),
        }
        near = getattr(error, "near", ()) or getattr(error, "matches", ())
        found |= {"near": list(near)} if near else {}
    return json.dumps({"error": found}, indent=2, default=str)


def _option_names(request: type[Specified] | None, renamed: Renamed) -> dict[str, str]:
    fields = fields_of(request).values() if request else ()
    return {**renamed} | {
        field.key: renamed.get(field.name, field.option)
        for field in fields
        if field.option and field.option.startswith("--")
    }


def _field(name: str, options: Mapping[str, str]) -> str:
    return re.sub(r"^[\w-]+", lambda found: options.get(found[0], found[0]), name)


def _remedy(text: str, options: Mapping[str, str]) -> str:
    return re.sub(r"`(\w+)`", lambda name: options.get(name[1], name[0]), text)
