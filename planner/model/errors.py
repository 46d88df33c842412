"""Every exception that relayd raises on purpose, in one tree.

    RelaydError
    ├── InputError (also a ValueError)    what was asked or given is wrong      exit 2
    │   ├── UnknownRegionError            no such region; carries near matches
    │   ├── AmbiguousRegionError          a name that fits several regions
    │   ├── CatalogueError                a catalogue file that contradicts itself
    │   ├── FormatError                   a file that is not of the format named
    │   └── StoreError                    a database that can't be opened or used
    ├── InfeasibleError                   no plan meets the limits              exit 3
    └── DataError                         measurements are missing or too old   exit 4

A caller that wants to catch all of them catches :class:`RelaydError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self


class RelaydError(Exception):
    """Base of all errors that relayd raises on purpose; the command line exits with `exit_code`."""

    exit_code = 1


class InputError(RelaydError, ValueError):
    """A wrong input: names the field, shows the value, and says what to do.

    The `field`, option, file or entry is as the user spells it; the `problem` is a clause that
    follows it, such as ``must be above 0``; the `value` is shown unless it is None; a `remedy` is a
    full sentence.
    """

    exit_code = 2

    def __init__(
        self, field: str, problem: str, *, value: object = None, remedy: str | None = None
    ) -> None:
        self.field = field
        self.problem = problem
        self.value = value
        self.remedy = remedy
        got = "" if value is None else f" (got {_shown(value)})"
        said = f"{field} {problem}"
        if problem == "is missing" and " " not in field:  # a field, and not a place in a file
            said = f"Missing {field}"
        super().__init__(f"{said}{got}." + (f" {remedy}" if remedy else ""))

    def within(self, where: str) -> Self:
        """Return the same error with a place before the field's name."""
        found = Exception.__new__(type(self))
        found.__dict__.update(self.__dict__)
        field = f"{where} {self.field}".strip()
        InputError.__init__(found, field, self.problem, value=self.value, remedy=self.remedy)
        return found


_FURTHER = dict.fromkeys(("ibm", "oracle", "oci", "ovh", "hetzner"), "further-clouds")
_EXAMPLES = {**_FURTHER, "r2": "r2", "onprem": "onprem"}
"""Examples of catalogue files, by provider."""


class UnknownRegionError(InputError):
    """No region, alias or city has this name."""

    def __init__(self, field: str, name: str, near: Sequence[str] = ()) -> None:
        self.near = tuple(near)
        remedy = "`relayd data regions` lists the regions and aliases."
        remedy = f"Did you mean {_one_of(near)}?" if near else remedy
        provider = name.partition(":")[0].lower()
        of_others = not any(one.startswith(f"{provider}:") for one in near)
        if of_others and (example := _EXAMPLES.get(provider)):
            remedy = f"A catalogue file states them: see configs/catalogue-{example}.example.toml."
        super().__init__(field, "is not a known region or alias", value=name, remedy=remedy)


class AmbiguousRegionError(InputError):
    """A name that fits several regions with no stated preference among them."""

    def __init__(self, field: str, name: str, matches: Sequence[str]) -> None:
        self.matches = tuple(matches)
        super().__init__(
            field, "fits several regions", value=name, remedy=f"Say {_one_of(matches)}."
        )


class CatalogueError(InputError):
    """A catalogue file with a wrong, missing or conflicting entry."""


class FormatError(InputError):
    """A file that is damaged or not of the format that was named."""


class StoreError(InputError):
    """A database that can't be opened, is damaged, foreign, read-only or too new."""


class InfeasibleError(RelaydError):
    """No plan meets the limits of a request.

    It says which `limit` makes it so, with its value, and as `remedy`, in a full sentence, the
    smallest change that would make a plan possible; `change` has it as fields of the request. Where
    transfers under way leave too little, there is a plan from `starts_at_s` on by their forecasts,
    seconds since 1970 (UTC).
    """

    exit_code = 3

    def __init__(
        self, limit: str, remedy: str, starts_at_s: float | None = None, **change: float
    ) -> None:
        self.limit = limit
        self.remedy = remedy
        self.starts_at_s = starts_at_s
        self.change = change
        super().__init__(f"No feasible plan: {limit}. {remedy}")


class DataError(RelaydError):
    """Measurements that the question needs are missing or too old."""

    exit_code = 4


def no_path(src: str, dst: str) -> DataError:
    """Return the error that no path is known between two regions."""
    return DataError(
        f"Nothing is known of any path from {src} to {dst} under these rules. Measure or import "
        "one of its links."
    )


def not_installed(package: str, extra: str, purpose: str) -> InputError:
    """Return the error that a package is needed which only an extra of relayd installs.

    The purpose is a clause that follows "is needed to".
    """
    problem = f"is needed to {purpose}, and is not installed"
    return InputError(package, problem, remedy=f"Install it with `pip install 'relayd[{extra}]'`.")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _one_of(names: Sequence[str]) -> str:
    listed = list(names[:8])
    if len(listed) == 1:
        return listed[0]
    more = ", ..." if len(names) > len(listed) else ""
    return f"{', '.join(listed[:-1])} or {listed[-1]}{more}"
