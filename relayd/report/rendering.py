"""A report as Markdown, or as one self-contained HTML file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, TypeAlias

import numpy as np

from planner.model.errors import not_installed
from relayd.report.document import Chart, Report, Section, Table

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
       max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
.method { color: #555; font-size: .9rem; }
.unsaid { color: #555; }
figure { margin: 1.25rem 0; overflow-x: auto; }
figcaption, caption { color: #444; font-size: .9rem; text-align: left; padding: .3rem 0; }
figure svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #ddd; text-align: right;
         font-variant-numeric: tabular-nums; white-space: nowrap; }
th:first-child, td:first-child, .text { text-align: left; }
dl { display: grid; grid-template-columns: max-content auto; gap: 0 1rem; font-size: .9rem; }
dd { margin: 0; }
@media print { body { margin: 0; max-width: none; } h2, figure, table { break-inside: avoid; } }
"""
_FIGURE = re.compile(r"[-+0-9.,%x~ ]+")


Drawer: TypeAlias = Callable[[dict[str, Any]], str]  # of a chart's specification, as SVG


def html(report: Report, draw: Drawer) -> str:
    """Return the report as a document, with its charts as they are drawn."""
    about = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in report.about.items())
    contents = "".join(
        f'<li><a href="#{s.key}">{escape(s.title)}</a></li>' for s in report.sections
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report.title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(report.title)}</h1><dl>{about}</dl><nav><ol>{contents}</ol></nav>"
        + "".join(_section(one, draw) for one in report.sections)
        + "</body></html>\n"
    )


def _section(section: Section, draw: Drawer) -> str:
    kind = "" if section.concluded else ' class="unsaid"'
    statements = "".join(f"<li{kind}>{escape(text)}</li>" for text in section.statements)
    return (
        f'<section id="{section.key}"><h2>{escape(section.title)}</h2>'
        f"<ul>{statements}</ul>"
        + "".join(
            f"<figure>{draw(one.spec)}<figcaption>{escape(one.caption)}</figcaption></figure>"
            for one in section.charts
        )
        + "".join(map(_table, section.tables))
        + f'<p class="method">{escape(section.method)} Samples: {section.samples:,}.</p></section>'
    )


def _table(table: Table) -> str:
    def cell(tag: str, text: str, example: str) -> str:
        kind = "" if _FIGURE.fullmatch(example) else ' class="text"'
        return f"<{tag}{kind}>{escape(text)}</{tag}>"

    first = table.rows[0] if table.rows else table.header
    head = "".join(cell("th", t, e) for t, e in zip(table.header, first, strict=True))
    body = "".join("<tr>" + "".join(cell("td", t, t) for t in row) + "</tr>" for row in table.rows)
    return (
        f'<div class="wide"><table><caption>{escape(table.caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def markdown(report: Report) -> str:
    """Return the report as a Markdown document (GitHub's tables)."""
    about = [f"- {name}: {value}" for name, value in report.about.items()]
    return "\n".join(
        [f"# {report.title}", "", *about, "", *map(_markdown_section, report.sections)]
    )


def _markdown_section(section: Section) -> str:
    lines = [f"## {section.title}", "", f"*{section.method}* Samples: {section.samples:,}.", ""]
    lines += [f"- {statement}" for statement in section.statements]
    for table in section.tables:
        lines += ["", _markdown_table(table)]
    return "\n".join([*lines, ""])


def _markdown_table(table: Table) -> str:
    def row(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    divider = "|" + "---|" * len(table.header)
    return "\n".join([f"{table.caption}:", "", row(table.header), divider, *map(row, table.rows)])


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
        "padding": {"left": 40, "right": 60, "top": 5, "bottom": 5},  # fonts differ in width
        "background": "transparent",
        "data": {"values": values},
        "config": _CONFIG,
        **top,
    }
    spec |= {"layer": layers} if isinstance(layers, list) else layers
    return Chart(caption, spec)


def svg_drawer(extra: str, purpose: str) -> Drawer:
    """Return what draws charts.

    Raises
    ------
    InputError
        If the library that draws charts is not installed; it names the extra and the purpose.
    """
    try:
        import vl_convert
    except ImportError:
        raise not_installed("vl-convert-python", extra, purpose) from None
    draw: Drawer = vl_convert.vegalite_to_svg
    return draw


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


def bars(caption: str, title: str, rows: Sequence[tuple[str, str, float]]) -> Chart:
    """Draw values (name, kind, value) as bars, those of one name together."""
    values = [{"name": name, "kind": kind, "value": float(value)} for name, kind, value in rows]
    kinds = list(dict.fromkeys(kind for _, kind, _ in rows))
    encoding = {
        "y": _category("name", [name for name, *_ in rows]) | {"axis": {"labelLimit": 260}},
        "yOffset": _category("kind", kinds),
        "x": {"field": "value", "type": "quantitative", "title": title},
        "color": _category("kind", kinds),
    }
    of_bars = {"mark": "bar", "encoding": encoding}
    return _chart(caption, values, of_bars, height={"step": 9, "for": "offset"})


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
