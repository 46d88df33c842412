"""The parts of a report, independent of the format."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from planner.model.answer import dumped
from probes.analysis.evidence import Record, TooFewError


class Table(NamedTuple):
    """Rows under a header; figures are formatted, with their units in the header."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Chart(NamedTuple):
    """A chart as a Vega-Lite specification (https://vega.github.io/vega-lite/, version 5).

    The caption describes it in a sentence, also for those who can't see it.
    """

    caption: str
    spec: dict[str, Any]


@dataclass(slots=True)
class Section:
    """One question, and the answer of the samples.

    Attributes
    ----------
    key : str
        Its name in JSON and in links.
    title, method : str
        The question; the method of the answer and its source.
    samples : int
        On which it rests.
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

    def say(self, *sentences: str) -> None:
        """Add sentences to the answer."""
        self.statements += sentences

    def tell(self, key: str, figures: Record, sentence: str) -> None:
        """Keep figures under a key, and say a sentence that has them in braces."""
        self.figures[key] = figures
        self.say(sentence.format_map(figures))

    def conclude(self, key: str, analyse: Callable[..., Any], *of: Any) -> Any:
        """Run an analysis and keep its figures, or state that there are too few samples for it."""
        try:
            result = analyse(*of)
        except TooFewError as error:
            self.say(f"{key.replace('_', ' ').capitalize()}: no conclusion. {error}")
            return None
        self.figures[key] = dumped(result, as_json=True)
        return result

    def table(self, caption: str, records: Iterable[Record], columns: str) -> None:
        """Add a table of records; columns are keys and formats, such as ``src dst mbps:,.0f``."""
        specs = [column.partition(":")[::2] for column in columns.split()]
        rows = tuple(
            tuple("not seen" if record[k] is None else format(record[k], f) for k, f in specs)
            for record in records
        )
        if rows:
            names = (k.replace("vm", "VM").replace("_", " ") for k, _ in specs)
            self.tables.append(Table(caption, tuple(names), rows))


@dataclass(frozen=True, slots=True)
class Analysis:
    """A question, and as a decorator what makes a section's analysis of the function it is put on.

    The function is called for each of the metrics on whose samples it rests. Without any it is
    called once, and counts its samples itself.
    """

    key: str
    title: str
    method: str
    metrics: Collection[Any] = ()
    answer: Callable[..., None] | None = None

    def __call__(self, answer: Callable[..., None]) -> Analysis:
        """Return the analysis that answers by a function."""
        return replace(self, answer=answer)

    def section(self, data: Any) -> Section:
        """Return the answer of data; it is inconclusive where it shows nothing."""
        assert self.answer
        section = Section(self.key, self.title, self.method)
        for metric in self.metrics:
            section.samples += len(data.samples_of(metric))
            self.answer(section, data, metric)
        if not self.metrics:
            self.answer(section, data)
        shown = section.figures or section.tables or section.charts
        section.concluded = section.concluded and bool(shown)
        return section


class Report(NamedTuple):
    """A whole report; `about` is its basis: the store, its span of time, its tools."""

    title: str
    about: dict[str, str]
    sections: Sequence[Section]

    def model_dump(self) -> dict[str, Any]:
        """Return the figures as JSON types, without tables and charts."""
        shown = ("key", "title", "method", "samples", "concluded", "statements", "figures")
        sections = [{name: getattr(one, name) for name in shown} for one in self.sections]
        return {"title": self.title, "about": self.about, "sections": sections}
