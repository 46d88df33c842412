"""Charts of a report, as Vega-Lite specifications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relayd.report.document import Chart

# Okabe and Ito's palette, which people with any colour vision can tell apart.
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
WIDTH, HEIGHT = 520, 260
MOST_POINTS = 400
MOST_DOTS = 1500

_CONFIG = {
    "font": "system-ui, sans-serif",
    "range": {"category": PALETTE},
    "axis": {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "gridColor": "#e4e4e4",
        "domainColor": "#888",
        "tickColor": "#888",
    },
    "legend": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
    "view": {"stroke": None},
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


def axis(field: str, title: str, *, log: bool = False, **more: Any) -> dict[str, Any]:
    """Return the encoding of a quantity on an axis."""
    scale: dict[str, Any] = {"type": "log"} if log else {"zero": False}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, **more}


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
        "color": {"field": "of", "type": "nominal", "title": None, "sort": list(series)},
        "strokeDash": {"field": "of", "type": "nominal", "title": None, "sort": list(series)},
    }
    return _chart(caption, values, {"mark": mark, "encoding": encoding})


def boxes_by_hour(caption: str, title: str, by_hour: Sequence[Sequence[float]]) -> Chart:
    """Draw quartiles and 5th to 95th percentiles by hour of the day (UTC)."""
    values = []
    for hour, numbers in enumerate(by_hour):
        if len(numbers):
            low, q1, middle, q3, high = np.percentile(numbers, (5, 25, 50, 75, 95))
            values.append(
                {
                    "hour": hour,
                    "low": float(low),
                    "q1": float(q1),
                    "median": float(middle),
                    "q3": float(q3),
                    "high": float(high),
                }
            )
    x = {
        "field": "hour",
        "type": "ordinal",
        "title": "hour of the day, UTC",
        "axis": {"labelAngle": 0},
    }
    layers = [
        {
            "mark": {"type": "rule", "color": PALETTE[0]},
            "encoding": {"x": x, "y": axis("low", title), "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "bar", "color": PALETTE[5], "stroke": PALETTE[0], "size": 12},
            "encoding": {"x": x, "y": axis("q1", title), "y2": {"field": "q3"}},
        },
        {
            "mark": {"type": "tick", "color": "black", "size": 12, "thickness": 2},
            "encoding": {"x": x, "y": axis("median", title)},
        },
    ]
    return _chart(caption, values, layers)


def points(
    caption: str,
    x_title: str,
    y_title: str,
    rows: Sequence[tuple[float, float, str]],
    *,
    line: Sequence[tuple[float, float]] = (),
    line_name: str = "",
    log: bool = False,
) -> Chart:
    """Draw points (x, y, group), and a line beside them."""
    # Evenly taken ones of many look the same and keep the file small.
    kept = rows[:: max(1, len(rows) // MOST_DOTS)]
    values = [{"x": float(x), "y": float(y), "group": group} for x, y, group in kept]
    groups = sorted({group for _, _, group in rows})
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "point", "filled": True, "opacity": 0.6, "size": 24},
            "encoding": {
                "x": axis("x", x_title, log=log),
                "y": axis("y", y_title, log=log),
                "color": {"field": "group", "type": "nominal", "title": None, "sort": groups},
                "shape": {"field": "group", "type": "nominal", "title": None, "sort": groups},
            },
        }
    ]
    if line:
        drawn = [{"x": float(x), "y": float(y), "name": line_name} for x, y in line]
        layers.append(
            {
                "data": {"values": drawn},
                "mark": {"type": "line", "color": "black"},
                "encoding": {"x": axis("x", x_title, log=log), "y": axis("y", y_title, log=log)},
            }
        )
        layers.append(
            {
                "data": {"values": drawn[-1:]},
                "mark": {"type": "text", "align": "right", "dy": 12, "dx": -4, "fontSize": 12},
                "encoding": {
                    "x": axis("x", x_title, log=log),
                    "y": axis("y", y_title, log=log),
                    "text": {"field": "name"},
                },
            }
        )
    return _chart(caption, values, layers)


def ranges(
    caption: str, title: str, rows: Sequence[tuple[str, str, Sequence[float]]], *, log: bool = False
) -> Chart:
    """Draw, for each name and group, the median and the 5th to 95th percentiles of values."""
    values, order = [], list(dict.fromkeys(name for name, _, _ in rows))
    for name, group, numbers in rows:
        low, middle, high = np.percentile(numbers, (5, 50, 95))
        values.append(
            {
                "name": name,
                "group": group,
                "low": float(low),
                "median": float(middle),
                "high": float(high),
            }
        )
    y = {
        "field": "name",
        "type": "nominal",
        "title": None,
        "sort": order,
        "axis": {"labelLimit": 260},
    }
    side = {"yOffset": {"field": "group"}, "color": {"field": "group", "title": None}}
    layers = [
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"y": y, "x": axis("low", title, log=log), "x2": {"field": "high"}, **side},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 40},
            "encoding": {"y": y, "x": axis("median", title, log=log), **side},
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
