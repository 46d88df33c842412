"""Runs one command, and reports its errors.

Modules are imported when their command is given: a service, a lab and documents of prices take a
while, and a plan waits for none of them.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, TypeAlias

from planner.model.errors import InputError, RelaydError
from relayd.cli.text import page, safe_output
from relayd.version import __version__

if TYPE_CHECKING:
    from planner.fields.specified import Specified

Handler: TypeAlias = Callable[[argparse.Namespace], int]
# Of commands that ask no question: the function that runs each, as `pkgutil` resolves it.
_HANDLERS = {
    "import": "data.importing:run",
    "data regions": "data.listing:regions",
    "data vm-types": "data.listing:vm_types",
    "data links": "data.listing:links",
    "data matrix": "data.matrix:run",
    "data export": "data.exporting:run",
    "data doctor": "help.doctor:run",
    "data samples list": "data.samples:batches",
    "data samples quarantine": "data.samples:apart",
    "data samples decisions": "data.samples:list_decisions",
    "data samples retract": "data.samples:run_decision",
    "data samples restore": "data.samples:run_decision",
    "data samples confirm": "data.samples:run_decision",
    "data samples accept": "data.samples:run_on_quarantine",
    "data samples reject": "data.samples:run_on_quarantine",
    "data store compact": "data.store:compact",
    "data store rebuild": "data.store:rebuild",
    "data store check": "data.store:check",
    "data store backup": "data.store:backup",
    "data store restore": "data.store:restore",
    "data store changes": "data.store:list_changes",
    "data catalogue show": "catalogue.showing:run",
    "data catalogue diff": "catalogue.changing:run",
    "data catalogue import": "catalogue.changing:run",
    "data catalogue update": "catalogue.changing:update",
    "data catalogue undo": "catalogue.changing:undo",
    "probe": "measuring.probe:run",
    "measure verify": "measuring.verify:run",
    "measure watch": "measuring.watch:run",
    "measure fleet check": "measuring.fleet:check",
    "measure fleet caps": "measuring.fleet:caps",
    "measure lab up": "measuring.lab:up",
    "measure lab status": "measuring.lab:status",
    "measure lab exec": "measuring.lab:execute",
    "measure lab set host": "measuring.lab:set_host",
    "measure lab set link": "measuring.lab:set_link",
    "measure lab set clear": "measuring.lab:clear",
    "measure lab down": "measuring.lab:down",
    "transfers list": "data.transfers:listed",
    "transfers show": "data.transfers:shown",
    "transfers begin": "data.transfers:begin",
    "transfers progress": "data.transfers:progress",
    "transfers end": "data.transfers:end",
    "transfers follow": "data.following:follow",
    "study bill": "data.bill:run",
    "study report": "data.report:run",
    "study series": "data.report:series",
    "study backtest": "data.backtest:run",
    "serve": "serving.serve:run",
    "serve mcp": "serving.mcp:run",
    "serve token create": "serving.token:create",
    "serve token list": "serving.token:listing",
    "serve token revoke": "serving.token:revoke",
    "help": "help.explain:run",
}


def handler_of(options: argparse.Namespace) -> Handler:
    """Return the function that runs the command that was given."""
    name = "questions.answers:run" if "question" in options else _HANDLERS[options.command]
    handler: Handler = resolve_name(f"relayd.cli.{name}")
    return handler


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code.

    0 done, 2 bad input, 3 no feasible plan, 4 data missing or too old, 5 finished in part,
    1 internal error.
    """
    with safe_output():
        return _run(arguments)


def _run(arguments: list[str]) -> int:
    options, code = None, 0
    try:
        if arguments[:1] == ["--version"]:
            print(f"relayd {__version__}")
        else:
            # It loads the questions of all distributions, and with them the planner.
            from relayd.cli.commands import introduction, parse

            if arguments:
                options = parse(arguments)
                code = handler_of(options)(options)
            else:
                print(introduction())
        sys.stdout.flush()  # here, where a closed pipe can still be told from a fault
    except RelaydError as error:
        _print_error(error, options, getattr(options, "json", {"--json", "-j"} & {*arguments}))
        return error.exit_code
    except BrokenPipeError:
        # The reader of a pipe has had enough (`relayd data links | head`): not an error.
        sys.stderr.close()
        return 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        # What is left in the buffer of standard output goes nowhere, or Python fails at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        place = error.filename or "what was written to"
        print(f"relayd: {place}: the disk is full. Free some space.", file=sys.stderr)
        return InputError.exit_code
    except KeyboardInterrupt:
        print("relayd: interrupted", file=sys.stderr)
        return 130
    return int(code or 0)


def _print_error(error: RelaydError, options: argparse.Namespace | None, as_json: object) -> None:
    renamed = dict(getattr(options, "renamed", {}))
    if not getattr(options, "db", None) and os.environ.get("RELAYD_DB"):
        renamed["--db"] = "RELAYD_DB"  # which says where the store is
    found = _document(error, getattr(options, "request", None), renamed)
    text = f"relayd: {found['detail']}"
    if as_json:
        text = json.dumps({"error": found}, indent=2, default=str)
    elif sys.stderr.isatty():
        text = "\n".join(page(sys.stderr).filled(line) for line in text.split("\n"))
    print(text, file=sys.stderr)


def _document(
    error: RelaydError, request: type[Specified] | None, renamed: Mapping[str, str]
) -> dict[str, object]:
    """Return an error as a JSON object, with ``exit_code`` and ``detail``.

    Of bad input it has its parts, too, and of an unknown or ambiguous region also ``near``. An
    error begins with the field's name; a remedy has other fields' names between backticks.
    """
    from planner.fields.specified import fields_of  # not before a command needs it

    options = {**renamed} | {
        field.key: renamed.get(field.name, field.option)
        for field in (fields_of(request).values() if request else ())
        if field.option and field.option.startswith("--")
    }

    def told(text: str) -> str:
        return re.sub(r"`(\w+)`", lambda name: options.get(name[1], name[0]), text)

    found: dict[str, object] = {"exit_code": error.exit_code, "detail": told(str(error))}
    if isinstance(error, InputError):
        field = re.sub(r"^[\w-]+", lambda name: options.get(name[0], name[0]), error.field)
        named = InputError(field, error.problem, value=error.value, remedy=error.remedy)
        found["detail"] = told(str(named))
        found |= {"field": field, "problem": error.problem, "value": error.value}
        found["remedy"] = error.remedy and told(error.remedy)
        if near := getattr(error, "near", ()) or getattr(error, "matches", ()):
            found["near"] = list(near)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; see :func:`run`."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell, by `>&-`
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115
    if "_ARGCOMPLETE" in os.environ:  # a shell that completes a line
        from relayd.cli.help.completion import complete

        complete()
    return run(sys.argv[1:] if arguments is None else arguments)
