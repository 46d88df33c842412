"""Short names of options."""

from __future__ import annotations

SHORT = {"--src": "-s", "--dst": "-d", "--connections": "-n", "--json": "-j", "--output": "-o"}


def flags(option: str) -> tuple[str, ...]:
    """Return the names of an option: its short flag, where it has one, and the long one."""
    return (SHORT[option], option) if option in SHORT else (option,)
