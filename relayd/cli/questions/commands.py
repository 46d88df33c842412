"""The commands that ask questions: their options are the fields of the questions."""

from __future__ import annotations

import argparse
from typing import Any

from relayd.cli.parser import command, group, option
from relayd.cli.questions.options import add_options
from relayd.emitting.formats import DEFAULT_PORT, FORMATS
from relayd.questions.registry import QUESTIONS, Question

# Options of commands alone: further parts of an answer to show.
SHOWN = {
    "shuffle": ("--pairs", None, "list every pair, with its paths"),
    "broadcast": ("--trees", None, "list every tree"),
    "schedule": ("--periods", None, "list rates and paths over time"),
}
NAMES = tuple(dict.fromkeys(question.command.split()[0] for question in QUESTIONS))


def add_question_commands(commands: Any, only: str | None = None) -> None:
    """Add the commands that answer a question; with options, unless another one is the only one.

    The fields of a question are loaded with its options, and of those that are not asked, none are.
    """
    place = None
    for question in QUESTIONS:
        room, _, name = question.command.rpartition(" ")
        if room and place is None:
            where = "recommend where to reduce or run tasks"
            place = group(commands, room, where, "what to place", "WHAT")
        help_text = question.summary[0].lower() + question.summary[1:]
        handler = f"relayd.cli.questions.{'plan' if name == 'plan' else 'answers'}:run"
        parser = command(place if room else commands, name, handler, help_text)
        if only in {None, question.command.split()[0]}:
            _add_options(parser, question)


def _add_options(parser: argparse.ArgumentParser, question: Question) -> None:
    add_options(parser, question.request)
    if question.command in SHOWN:
        option(parser.add_argument_group("shown"), *SHOWN[question.command])
    if question.command == "plan":
        _add_emitting(parser)


def _add_emitting(parser: argparse.ArgumentParser) -> None:
    """Add the options that turn a plan into what another tool runs."""
    run = parser.add_argument_group("running it")
    with_tool = "print what to run with this tool instead"
    option(run, "--emit", None, with_tool, choices=tuple(FORMATS))
    address = "for --emit: address of the VM there, or of several, with commas; repeatable"
    option(run, "--endpoint", "REGION=ADDRESS...", address)
    option(run, "--port", "N", f"for --emit: where relays listen (default {DEFAULT_PORT})")
