"""Bills: which traffic providers' cost exports tell of, and what was paid for it.

Read are CSV and JSON lines of AWS, Azure and Google Cloud. ``configs/bills.toml`` says how to tell
them, what their columns and usage types mean, and where that is documented.
"""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cache
from itertools import chain
from typing import Any

from planner.model.aliases import only_region
from planner.model.catalogue import Catalogue
from planner.model.errors import FormatError
from planner.model.units import volume_text
from probes.importers.tables import flat
from probes.importers.text import documents
from relayd.catalogue.files import built_in_folder

INTERNET, UNSTATED = "the internet", "a region that the bill does not name"
RECEIVED, INSIDE = "received, which the sender's bill has", "within a region"
OTHER, UNREADABLE = "other rows", "traffic that can't be read"
"""These two stand in place of the source as well."""
_TO = {"internet": INTERNET, "region": "", "received": RECEIVED, "inside": INSIDE}


@dataclass(slots=True)
class BillLine:
    """All rows of a bill between the same ends: their number, what was paid, and GB."""

    rows: int = 0
    paid: Decimal = Decimal(0)
    volume_gb: Decimal = Decimal(0)


@dataclass(slots=True)
class Bill:
    """A bill by source and destination: ids of regions, or a constant of this module.

    Attributes
    ----------
    what, span, currency : str
        Whose report it is, its first and last month, and the currency of what was paid.
    months : int
        At least 1.
    """

    what: str
    span: str
    currency: str
    months: int
    lines: Mapping[tuple[str, str], BillLine] = field(repr=False)

    @property
    def paid(self) -> Decimal:
        """By all rows."""
        return sum((line.paid for line in self.lines.values()), Decimal(0))

    def demands_gb(self) -> dict[tuple[str, str], float]:
        """GB of a mean month between two regions, by source and destination."""
        found = {p: float(one.volume_gb) / self.months for p, one in self.lines.items()}
        return {pair: gb for pair, gb in found.items() if ":" in pair[1] and gb > 0}

    def notes(self) -> tuple[str, ...]:
        """Say what the demands rest on, and what is not among them."""
        paid, rest = Decimal(0), list[str]()
        for (src, dst), one in self.lines.items():
            paid += one.paid if ":" in dst else 0
            if dst in (INTERNET, UNSTATED, UNREADABLE):
                what = f"{src} -> {dst}" if ":" in src else f"{one.rows:,} rows of {dst}"
                rest.append(f"{what} ({volume_text(float(one.volume_gb))}, {self.money(one.paid)})")
        said = f"Volumes are of a mean month of {self.what}, {self.span}: {self.money(paid)} in all"
        left = f"Not planned, as the bill has no other region: {'; '.join(rest)}."
        return (f"{said} was paid for them.", *([left] if rest else []))

    def money(self, amount: Decimal) -> str:
        """Return an amount with its currency."""
        return f"{amount:,.2f} {self.currency}"


def read_bill(text: str, name: str, catalogue: Catalogue) -> Bill | None:
    """Return the bill that a text is, or None if it is none.

    Raises
    ------
    FormatError
        If a row is damaged or does not say what was paid, or currencies differ.
    """
    rows = _rows(text, name)
    try:
        first = next(rows, (0, {}))
    except (ValueError, csv.Error):
        return None
    report = next((one for one in _reports() if {*one["columns"]} <= first[1].keys()), None)
    if report is None:
        return None
    lines: defaultdict[tuple[str, str], BillLine] = defaultdict(BillLine)
    months, currencies = set[str](), set[str]()

    @cache  # a bill repeats some hundred names and usage types
    def named(place: str) -> str:
        return only_region(f"{report['provider']}:{report['names'].get(place, place)}", catalogue)

    @cache
    def use(usage: str) -> tuple[str, Mapping[str, str]]:
        found = ((rule["to"], re.search(rule["pattern"], usage)) for rule in report["traffic"])
        return next(((to, match.groupdict("")) for to, match in found if match), ("", {}))

    def cell(key: str) -> str:
        return next((row[one] for one in report[key] if row.get(one)), "")

    try:
        for at, row in chain([first], rows):  # noqa: B007 - an error names it
            to, ends = use(" ".join(row.get(one, "") for one in report["usage"]))
            src, dst = (row.get(report[end]) or ends.get(end, "") for end in ("src", "dst"))
            src, dst = named(src), _TO.get(to) or (named(dst) if dst else "") or UNSTATED
            volume_gb = _volume_gb(row, report) if to else Decimal(0)
            if not to or to == "unread" or not src or volume_gb is None:
                src = dst = UNREADABLE if to else OTHER
            line = lines[src, INSIDE if src == dst and ":" in src else dst]
            line.rows, line.paid = line.rows + 1, line.paid + _number(cell("paid") or "0")
            line.volume_gb += volume_gb or 0
            months.add(_month(cell("month")))
            currencies.add("USD" if row.get("costinusd") else cell("currency").upper() or "USD")
    except (ValueError, csv.Error) as error:
        problem = "or the row after it can't be read, so that sums would be wrong"
        raise FormatError(f"{name}, line {at}", problem, value=error) from None
    if len(currencies) > 1:
        problem = f"is in several currencies: {', '.join(sorted(currencies))}"
        raise FormatError(name, problem, remedy="Give one file for each.")
    stated = sorted(months - {""}) or ["of no stated month"]
    span = " to ".join(dict.fromkeys((stated[0], stated[-1])))
    return Bill(report["name"], span, currencies.pop(), len(stated), lines)


@cache
def _reports() -> list[dict[str, Any]]:
    found = tomllib.loads((built_in_folder() / "bills.toml").read_text())["report"]
    return [{"src": "", "dst": "", "names": {}} | one for one in found]


def _rows(text: str, name: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield lines and their cells, by columns' letters and digits in lower case."""
    if text.lstrip()[:1] in ("{", "["):
        for at, row in documents(io.BytesIO(text.encode()), name):
            yield at, {_plain(head): cell for head, cell in flat(row or {}).items()}
        return
    lines = csv.reader(io.StringIO(text))
    header = [_plain(head) for head in next(lines, [])]
    for cells in filter(None, lines):
        yield lines.line_num, dict(zip(header, cells, strict=True))


@cache
def _plain(head: str) -> str:
    return re.sub("[^a-z0-9]", "", head.lower())


def _volume_gb(row: Mapping[str, str], report: Mapping[str, Any]) -> Decimal | None:
    """Return what a row says that it moved; None if that can't be read."""
    if (of := report.get("charges")) and row.get(of["column"], "") not in of["values"]:
        return Decimal(0)
    with suppress(ValueError):
        for one in report["amounts"]:
            if row.get(one.get("unit", "")) == one.get("is"):
                return _number(row.get(one["column"], "")) * Decimal(one["gb"])
    return None


def _number(text: str) -> Decimal:
    with suppress(InvalidOperation):
        if (found := Decimal(text.strip())).is_finite():
            return found
    raise ValueError(f"{text[:40]!r} is no number")


@cache
def _month(date: str) -> str:
    """Return the month of a date such as 2026-11-01, 11/01/2026 or 202611; else no text."""
    found = re.match(r"(\d{4})-?(\d\d)|(\d\d)/\d\d/(\d{4})", date)
    return f"{found[1] or found[4]}-{found[2] or found[3]}" if found else ""
