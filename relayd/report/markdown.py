"""A report as Markdown: text and tables, without charts."""

from __future__ import annotations

from relayd.report.document import Report, Section, Table


def markdown(report: Report) -> str:
    """Return the report as a Markdown document (GitHub's tables)."""
    about = [f"- {name}: {value}" for name, value in report.about.items()]
    return "\n".join([f"# {report.title}", "", *about, "", *map(_section, report.sections)])


def _section(section: Section) -> str:
    lines = [f"## {section.title}", "", f"*{section.method}* Samples: {section.samples:,}.", ""]
    lines += [f"- {statement}" for statement in section.statements]
    for table in section.tables:
        lines += ["", _table(table)]
    return "\n".join([*lines, ""])


def _table(table: Table) -> str:
    def row(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    divider = "|" + "---|" * len(table.header)
    return "\n".join([f"{table.caption}:", "", row(table.header), divider, *map(row, table.rows)])
