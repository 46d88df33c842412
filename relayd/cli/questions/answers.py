"""The commands that ask."""

from __future__ import annotations

import argparse

from planner.fields.kinds import assignments
from planner.model.errors import InputError
from planner.transfer.plan import Plan
from relayd.cli.options import wan_of, whole_number
from relayd.cli.questions.options import dest_of, request_from
from relayd.cli.text import page
from relayd.emitting.formats import DEFAULT_PORT, emit
from relayd.sources.wan import Wan


def run(options: argparse.Namespace) -> int:
    """Ask what the options say, and print the answer: as JSON, or as text for people.

    Of many transfers (``--many``), print a row each. Raises an InputError if both ``--emit`` and
    ``--json`` are given.
    """
    tool = getattr(options, "emit", None)
    if tool and options.json:
        raise InputError("--emit", "and --json ask for different output", remedy="Leave one out.")
    wan = wan_of(options)
    if getattr(options, "many", None):
        from relayd.cli.questions.many import decide  # loads what single plans do without

        return decide(wan, options)
    answer = wan.ask(request_from(options, options.request))
    if tool:
        print(_emitted(answer, wan, options), end="")
    elif options.json:
        print(answer.model_dump_json(indent=2))
    else:
        given = {
            one.keyword: (getattr(options, dest_of(one.option)) not in (None, False)) == one.given
            for one in options.question.shown
        }
        print(answer.text(page(), **given))
    return 0


def _emitted(plan: Plan, wan: Wan, options: argparse.Namespace) -> str:
    """Return the plan as a script or a configuration of a tool."""
    port = whole_number(options.port, "--port") if options.port else DEFAULT_PORT
    endpoints: dict[str, list[str]] = {}
    for name, addresses in assignments(options.endpoint, field="--endpoint").items():
        region = wan.resolve(name, "--endpoint").region_id
        endpoints.setdefault(region, []).extend(a.strip() for a in addresses.split(","))
    return emit(plan, options.emit, endpoints=endpoints, port=port)
