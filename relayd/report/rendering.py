"""A report as Markdown, or as one self-contained HTML file."""

from __future__ import annotations

import re
from html import escape

from relayd.report.charts import svg
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


def html(report: Report) -> str:
    """Return the report as a document.

    Raises
    ------
    InputError
        If the library that draws charts is not installed.
    """
    about = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in report.about.items())
    contents = "".join(
        f'<li><a href="#{s.key}">{escape(s.title)}</a></li>' for s in report.sections
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report.title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(report.title)}</h1><dl>{about}</dl><nav><ol>{contents}</ol></nav>"
        + "".join(map(_section, report.sections))
        + "</body></html>\n"
    )


def _section(section: Section) -> str:
    kind = "" if section.concluded else ' class="unsaid"'
    statements = "".join(f"<li{kind}>{escape(text)}</li>" for text in section.statements)
    return (
        f'<section id="{section.key}"><h2>{escape(section.title)}</h2>'
        f"<ul>{statements}</ul>"
        + "".join(map(_figure, section.charts))
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


def _figure(chart: Chart) -> str:
    drawn = svg(chart.spec, "report", "draw charts (reports as md or json need none)")
    return f"<figure>{drawn}<figcaption>{escape(chart.caption)}</figcaption></figure>"


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
