"""The commands that ask questions: their options are the fields of the questions."""

from __future__ import annotations

from typing import Any

from relayd.cli.parser import add_commands, add_options
from relayd.cli.questions.options import add_options as add_fields
from relayd.emitting.formats import DEFAULT_PORT, FORMATS
from relayd.questions.registry import QUESTIONS

# Options of commands alone: further parts of an answer to show, and what another tool runs.
_MORE = {
    "plan": f"""
  [running it]
  --emit {{{",".join(FORMATS)}}}  print what to run with this tool instead
  --endpoint REGION=ADDRESS...  for --emit: address of the VM there, or of several, with commas;
                       repeatable
  --port N             for --emit: where relays listen (default {DEFAULT_PORT})
""",
    "shuffle": "  [shown]\n  --pairs  list every pair, with its paths",
    "broadcast": "  [shown]\n  --trees  list every tree",
    "schedule": "  [shown]\n  --periods  list rates and paths over time",
}
NAMES = tuple(dict.fromkeys(question.command.split()[0] for question in QUESTIONS))


def add_question_commands(commands: Any, only: str | None = None) -> None:
    """Add the commands that answer a question; with options, unless another one is the only one.

    The fields of a question are loaded with its options, and of those that are not asked, none are.
    """
    lines = [
        f"{one.command}  questions.{'plan' if one.command == 'plan' else 'answers'}:run  "
        f"{one.summary[0].lower()}{one.summary[1:]}"
        for one in QUESTIONS
    ]
    lines.insert(4, "place  recommend where to reduce or run tasks")
    added = add_commands(commands, "\n".join(lines))
    for question in QUESTIONS:
        if only in {None, question.command.split()[0]}:
            add_fields(added[question.command], question.request)
            add_options(added[question.command], _MORE.get(question.command, ""))
