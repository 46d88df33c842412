"""The parts of a report, independent of the format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from planner.model.answer import dumped
from probes.analysis.evidence import TooFewError


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a header; figures are formatted, with their units in the header."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as a Vega-Lite specification (https://vega.github.io/vega-lite/, version 5).

    Attributes
    ----------
    caption : str
        What it shows, in a sentence: also for those who can't see it.
    spec : dict
    """

    caption: str
    spec: dict[str, Any]


@dataclass(slots=True)
class Section:
    """One question, and what the samples say about it.

    Attributes
    ----------
    key : str
        Its name in JSON and in links.
    title, method : str
        The question; how it is answered, and where the method is from.
    samples : int
        That it rests on.
    statements : list of str
        The answer, in sentences.
    figures : dict
        The same as plain values, for programs.
    concluded : bool
        False where there was too little to say anything.
    """

    key: str
    title: str
    method: str
    samples: int = 0
    statements: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    concluded: bool = True

    def say(self, key: str, conclude: Callable[[], Any]) -> Any:
        """Run an analysis and keep its figures, or state that there are too few samples for it."""
        try:
            found = conclude()
        except TooFewError as error:
            self.statements.append(f"{key.replace('_', ' ').capitalize()}: no conclusion. {error}")
            return None
        self.figures[key] = dumped(found, as_json=True)
        return found


@dataclass(frozen=True, slots=True)
class Report:
    """A whole report.

    Attributes
    ----------
    title : str
    about : dict of str to str
        What it rests on: the store, its span of time, its tools.
    sections : tuple of Section
    """

    title: str
    about: dict[str, str]
    sections: tuple[Section, ...]

    def model_dump(self) -> dict[str, Any]:
        """Return the figures as JSON types, without tables and charts."""
        return {
            "title": self.title,
            "about": self.about,
            "sections": [
                {
                    "key": section.key,
                    "title": section.title,
                    "method": section.method,
                    "samples": section.samples,
                    "concluded": section.concluded,
                    "statements": section.statements,
                    "figures": section.figures,
                }
                for section in self.sections
            ],
        }
