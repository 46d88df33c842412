"""Answers and matrices as charts for notebooks, as Vega-Lite specifications."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from planner.broadcast.plan import BroadcastPlan
from planner.model.answer import Cost
from planner.model.errors import InputError
from planner.model.units import volume_text
from planner.placement.plan import ReducePlacement
from planner.transfer.plan import Plan
from relayd.report.document import Chart
from relayd.report.rendering import heat_map, points, svg_drawer
from relayd.tables.matrices import Matrix

Plotted: TypeAlias = Plan | BroadcastPlan | ReducePlacement
MEDIA_TYPE = "application/vnd.vegalite.v5+json"
S_PER_MIN = 60.0
DOT_SIZE = 110
"""Of the few points of an answer, in square pixels."""
MOST_REGIONS = 200
"""Of a heat map: 40,000 cells are 2.6 MB of JSON and 10 MB of SVG."""


class Plot:
    """A chart that notebooks show.

    Those that know Vega-Lite (JupyterLab, Visual Studio Code) draw it by themselves; the others get
    an SVG where vl-convert is installed (the extra ``relayd[plot]``).

    Parameters
    ----------
    chart : Chart
    """

    def __init__(self, chart: Chart) -> None:
        self._chart = chart

    def __repr__(self) -> str:
        """Say what it shows."""
        return f"<Plot: {self._chart.caption}>"

    @property
    def spec(self) -> dict[str, Any]:
        """The Vega-Lite specification, version 5: for changes of your own."""
        return self._chart.spec

    def svg(self) -> str:
        """Return it as SVG.

        Raises InputError if vl-convert is not installed, or can't draw :attr:`spec` as it was
        changed.
        """
        try:
            return svg_drawer("plot", "draw a chart as SVG")(self.spec)
        except ValueError as error:
            remedy = "Undo what was changed in it since relayd made it."
            raise InputError("spec", f"can't be drawn as SVG ({error})", remedy=remedy) from error

    def save(self, file: str | Path) -> None:
        """Write it as ``.svg``, or as ``.json`` for tools that read Vega-Lite.

        Raises InputError if the name ends otherwise, or SVG can't be drawn.
        """
        path = Path(file)
        if path.suffix == ".svg":
            path.write_text(self.svg())
        elif path.suffix == ".json":
            path.write_text(json.dumps(self.spec, allow_nan=False))
        else:
            raise InputError("file", "must end with .svg or .json", value=str(file))

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        bundle: dict[str, Any] = {MEDIA_TYPE: self.spec, "text/plain": repr(self)}
        try:
            bundle["image/svg+xml"] = self.svg()
        except InputError:
            return bundle  # Vega-Lite and text show it without
        return bundle


def plot(what: Plotted | Matrix) -> Plot:
    """Return a chart of an answer, or of a matrix.

    Raises InputError if there is no chart of such a thing, nothing to draw, or a matrix has more
    than ``MOST_REGIONS`` regions.

    Parameters
    ----------
    what : Plan, BroadcastPlan, ReducePlacement or Matrix
        Of an answer, time and cost of what was chosen and of the other options, with the frontier
        where it was asked for; of a matrix, a heat map.
    """
    if isinstance(what, Matrix):
        return Plot(_matrix_chart(what))
    if not isinstance(what, Plan | BroadcastPlan | ReducePlacement):
        raise InputError(
            "plot",
            "has no chart of this",
            value=what,
            remedy="Give a plan, a broadcast, a placement or a matrix.",
        )
    rows = [(duration_s / S_PER_MIN, cost.total, name) for name, duration_s, cost in _options(what)]
    frontier = () if isinstance(what, ReducePlacement) else what.frontier
    line = [(point.duration_s / S_PER_MIN, point.cost_usd.total) for point in frontier]
    caption = f"Time and cost of {_subject(what)}"
    chart = points(caption, "time, min", "cost, USD", rows, line=line, line_name="frontier")
    layers = chart.spec["layer"]
    layers[0]["mark"]["size"] = DOT_SIZE
    layers.reverse()  # what was chosen is often on the frontier: it is drawn over the line
    return Plot(chart)


def _options(answer: Plotted) -> Iterator[tuple[str, float, Cost]]:
    """Yield the name, the duration in s and the cost of what was chosen, and of other options."""
    yield "chosen", answer.duration_s, answer.cost_usd
    if isinstance(answer, ReducePlacement):
        for one in answer.options:
            yield one.name, one.duration_s, one.cost_usd
        return
    direct = answer.direct
    if direct is not None and direct.duration_s is not None and direct.cost_usd is not None:
        yield "direct", direct.duration_s, direct.cost_usd
    if answer.best_relay is not None:
        yield "best relay", answer.best_relay.duration_s, answer.best_relay.cost_usd
    if isinstance(answer, Plan):
        for relay in answer.alternatives:
            yield "other relays", relay.duration_s, relay.cost_usd


def _subject(answer: Plotted) -> str:
    if isinstance(answer, ReducePlacement):
        return f"reducing {volume_text(answer.shuffle_gb)}"
    volume, src = volume_text(answer.request["volume_gb"]), answer.request["src"]
    if isinstance(answer, BroadcastPlan):
        return f"{volume} from {src} to {len(answer.destinations)} regions"
    return f"{volume} from {src} to {answer.request['dst']}"


def _matrix_chart(matrix: Matrix) -> Chart:
    if len(matrix.regions) > MOST_REGIONS:
        problem = f"draws matrices of at most {MOST_REGIONS} regions"
        remedy = (
            "Choose regions first: `measured_only=True` leaves out those without "
            "measurements, and of `matrix.to_frame()` other tools draw any part."
        )
        raise InputError("plot", problem, value=len(matrix.regions), remedy=remedy)
    cells = [
        (src, dst, value)
        for src, row in zip(matrix.regions, matrix.values.tolist(), strict=True)
        for dst, value in zip(matrix.regions, row, strict=True)
        if value == value
    ]
    if not cells:
        raise InputError("plot", "has nothing to draw: the matrix has no values", value=matrix)
    caption = f"{matrix.metric} of {len(matrix.regions)} regions, source by destination"
    # Rates differ by orders of magnitude; a share or an age may be 0.
    log = min(value for _, _, value in cells) > 0
    return heat_map(caption, f"{matrix.metric}, {matrix.unit}", cells, log=log)
