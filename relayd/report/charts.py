"""Charts of a report, as Vega-Lite specifications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from planner.model.errors import not_installed
from relayd.report.document import Chart

# Okabe and Ito's palette, which people with any colour vision can tell apart.
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
WIDTH, HEIGHT = 520, 260
MOST_POINTS = 400
MOST_DOTS = 1500

_CONFIG = {
    "font": "system-ui, sans-serif",
    "range": {"category": PALETTE},
    "axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
    "legend": {"labelFontSize": 12},
}


def _chart(caption: str, values: list[dict[str, Any]], layers: Any, **top: Any) -> Chart:
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "description": caption,
        "width": WIDTH,
        "height": HEIGHT,
        "background": "transparent",
        "data": {"values": values},
        "config": _CONFIG,
        **top,
    }
    spec |= {"layer": layers} if isinstance(layers, list) else layers
    return Chart(caption, spec)


def svg(spec: dict[str, Any], extra: str, purpose: str) -> str:
    """Return a chart's specification drawn as SVG.

    Raises
    ------
    InputError
        If the library that draws charts is not installed; it names the extra and the purpose.
    """
    try:
        import vl_convert
    except ImportError:
        raise not_installed("vl-convert-python", extra, purpose) from None
    drawn: str = vl_convert.vegalite_to_svg(spec)
    return drawn


def axis(field: str, title: str, *, log: bool = False, **more: Any) -> dict[str, Any]:
    """Return the encoding of a quantity on an axis."""
    scale: dict[str, Any] = {"type": "log"} if log else {"zero": False}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, **more}


def _category(field: str, order: Sequence[str]) -> dict[str, Any]:
    return {"field": field, "type": "nominal", "title": None, "sort": list(order)}


def cumulative(
    caption: str, title: str, series: Mapping[str, Sequence[float]], *, log: bool = False
) -> Chart:
    """Draw cumulative distributions: the share of values up to each."""
    values = []
    for name, numbers in series.items():
        ordered = np.sort(np.asarray(numbers, dtype=float))
        shares = np.arange(1, ordered.size + 1) / ordered.size
        kept = np.unique(np.linspace(0, ordered.size - 1, MOST_POINTS).astype(int))
        values += [{"x": float(ordered[i]), "share": float(shares[i]), "of": name} for i in kept]
    mark = {"type": "line", "interpolate": "step-after", "strokeWidth": 2}
    encoding = {
        "x": axis("x", title, log=log),
        "y": axis("share", "share of pairs", axis={"format": "%"}),
        "color": _category("of", list(series)),
        "strokeDash": _category("of", list(series)),
    }
    return _chart(caption, values, {"mark": mark, "encoding": encoding})


def points(
    caption: str,
    x_title: str,
    y_title: str,
    rows: Sequence[tuple[float, float, str]],
    *,
    line: Sequence[tuple[float, float]] = (),
    line_name: str = "",
) -> Chart:
    """Draw points (x, y, group), and a line through them."""
    # Evenly taken ones of many look the same and keep the file small.
    kept = rows[:: max(1, len(rows) // MOST_DOTS)]
    values = [{"x": float(x), "y": float(y), "group": group} for x, y, group in kept]
    group = _category("group", sorted({group for _, _, group in rows}))
    at = {"x": axis("x", x_title), "y": axis("y", y_title)}
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "point", "filled": True, "opacity": 0.6, "size": 24},
            "encoding": {**at, "color": group, "shape": group},
        }
    ]
    if line:
        drawn = [{"x": float(x), "y": float(y), "name": line_name} for x, y in line]
        stroke = {"type": "line", "color": "black"}
        label = {"type": "text", "align": "right", "dy": 12, "dx": -4, "fontSize": 12}
        name = {"text": {"field": "name"}}
        layers += [
            {"data": {"values": drawn}, "mark": stroke, "encoding": at},
            {"data": {"values": drawn[-1:]}, "mark": label, "encoding": {**at, **name}},
        ]
    return _chart(caption, values, layers)


def ranges(
    caption: str, title: str, rows: Sequence[tuple[str, Sequence[float]]], *, log: bool = False
) -> Chart:
    """Draw the median and the 5th to 95th percentiles of the values of each name."""
    values = []
    for name, numbers in rows:
        low, median, high = np.percentile(numbers, (5, 50, 95)).tolist()
        values.append({"name": name, "low": low, "median": median, "high": high})
    y = _category("name", [name for name, _ in rows]) | {"axis": {"labelLimit": 260}}
    spread = {"y": y, "x": axis("low", title, log=log), "x2": {"field": "high"}}
    layers = [
        {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": spread},
        {
            "mark": {"type": "point", "filled": True, "size": 40},
            "encoding": {"y": y, "x": axis("median", title, log=log)},
        },
    ]
    return _chart(caption, values, layers, height={"step": 14})


def heat_map(
    caption: str, title: str, cells: Sequence[tuple[str, str, float]], *, log: bool = False
) -> Chart:
    """Draw values of pairs: rows send, columns receive."""
    values = [{"src": src, "dst": dst, "value": float(value)} for src, dst, value in cells]
    names = list(dict.fromkeys(name for src, dst, _ in cells for name in (src, dst)))
    side = WIDTH / len(names)
    ends = {"type": "nominal", "sort": names, "axis": {"labelFontSize": max(4, min(12, side))}}
    encoding = {
        "x": {"field": "dst", "title": "to", **ends},
        "y": {"field": "src", "title": "from", **ends},
        "color": axis("value", title, log=log) | {"legend": {"title": title}},
        "tooltip": [{"field": name} for name in ("src", "dst", "value")],
    }
    return _chart(caption, values, {"mark": "rect", "encoding": encoding}, height=WIDTH)
