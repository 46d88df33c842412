"""The commands that help to use the others."""

from __future__ import annotations

from typing import Any

from relayd.cli.parser import command

SHELLS = ("bash", "zsh", "fish", "tcsh")


def add_help_commands(commands: Any) -> None:
    """Add the commands that explain, look for what is wrong, and complete."""
    room = "relayd.cli.help"
    explain = command(
        commands, "explain", f"{room}.explain:run", "explain a term of the answers, or an option"
    )
    explain.add_argument("term", metavar="TERM", nargs="*", help="such as aggregate, or margin")
    command(commands, "doctor", f"{room}.doctor:run", "look for what is missing, old or wrong here")
    completion = command(
        commands, "completion", f"{room}.completion:run", "print a script that completes in a shell"
    )
    completion.add_argument("shell", choices=SHELLS)
