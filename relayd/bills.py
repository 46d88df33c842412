"""Bills: which traffic providers' cost exports tell of, and what was paid for it.

Read are CSV and JSON lines of AWS, Azure and Google Cloud. ``configs/bills.toml`` says how to tell
them, what their columns and usage types mean, and where that is documented.
"""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from itertools import chain
from typing import Any

from planner.fields.demands import Pair
from planner.model.aliases import only_region
from planner.model.catalogue import Catalogue
from planner.model.errors import FormatError
from probes.importers.tables import flat
from probes.importers.text import documents
from relayd.catalogue.files import built_in_folder

INTERNET, UNSTATED = "the internet", "a region that the bill does not name"
RECEIVED, INSIDE = "received, which the sender's bill has", "within a region"
OTHER, UNREADABLE = "other rows", "traffic that can't be read"
"""These two stand in place of the source as well."""
_TO = {"internet": INTERNET, "region": "", "received": RECEIVED, "inside": INSIDE}


@dataclass(slots=True)
class Bill:
    """A provider's report, summed by source and destination.

    These are ids of regions, or constants of this module; `paid` adds up to the bill. Its span is
    from its first to its last month, of which there are `months`, at least 1.
    """

    what: str
    currency: str = ""
    span: str = ""
    months: int = 1
    rows: Counter[Pair] = field(default_factory=Counter)
    paid: defaultdict[Pair, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    volume_gb: defaultdict[Pair, Decimal] = field(default_factory=lambda: defaultdict(Decimal))

    def demands_gb(self) -> dict[Pair, float]:
        """GB of a mean month between two regions, by source and destination."""
        found = {p: float(gb) / self.months for p, gb in self.volume_gb.items() if ":" in p[1]}
        return {pair: gb for pair, gb in found.items() if gb > 0}

    def notes(self) -> tuple[str, ...]:
        """Say what the demands rest on, and what is not among them."""
        paid: defaultdict[str, Decimal] = defaultdict(Decimal)
        for (_, dst), amount in self.paid.items():
            paid["these" if ":" in dst else dst] += amount
        these, *rest = (
            f"{paid[kind]:,.2f} {self.currency} was paid for {kind}"
            for kind in ("these", INTERNET, UNSTATED, UNREADABLE)
            if kind in paid or kind == "these"
        )
        left = f" Not planned, as it has no second region: {', '.join(rest)}." if rest else ""
        return (f"Volumes are of a mean month of {self.what}, {self.span}: {these} in all.{left}",)


def read_bill(text: str, name: str, catalogue: Catalogue) -> Bill | None:
    """Return the bill that a text is, or None if it is none.

    Raises a FormatError if a row is damaged or does not say what was paid, or currencies differ.
    """
    rows = _rows(text, name)
    try:
        first = next(rows, (0, {}))
    except (ValueError, csv.Error):
        return None
    reports = tomllib.loads((built_in_folder() / "bills.toml").read_text())["report"]
    report = next((one for one in reports if {*one["columns"]} <= first[1].keys()), None)
    if report is None:
        return None
    bill, months = Bill(report["name"]), set[str]()

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
            pair = src, INSIDE if src == dst and ":" in src else dst
            paid = Decimal(cell("paid") or "0")
            currency = "USD" if row.get("costinusd") else cell("currency").upper() or "USD"
            if not paid.is_finite() or bill.currency not in ("", currency):
                raise ValueError(f"{paid} {currency}")
            bill.currency = currency
            bill.rows[pair] += 1
            bill.paid[pair] += paid
            bill.volume_gb[pair] += volume_gb or 0
            # Such as 2026-11-01, 202611 and 11/01/2026.
            if month := re.match(r"(\d{4})-?(\d\d)|(\d\d)/\d\d/(\d{4})", cell("month")):
                months.add(f"{month[1] or month[4]}-{month[2] or month[3]}")
    except (ValueError, ArithmeticError, csv.Error) as error:
        problem = "or the row after it can't be read, or is of another currency"
        value = cell("paid") if isinstance(error, ArithmeticError) else error
        raise FormatError(f"{name}, line {at}", problem, value=value) from None
    stated = sorted(months) or ["of no stated month"]
    bill.months, bill.span = len(stated), " to ".join(dict.fromkeys((stated[0], stated[-1])))
    return bill


def _rows(text: str, name: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield lines and their cells, by columns' letters and digits in lower case."""
    plain = cache(lambda head: re.sub("[^a-z0-9]", "", head.lower()))
    if text.lstrip()[:1] in ("{", "["):
        for at, row in documents(io.BytesIO(text.encode()), name):
            yield at, {plain(head): cell for head, cell in flat(row or {}).items()}
        return
    lines = csv.reader(io.StringIO(text))
    header = [plain(head) for head in next(lines, [])]
    for cells in filter(None, lines):
        yield lines.line_num, dict(zip(header, cells, strict=True))


def _volume_gb(row: Mapping[str, str], report: Mapping[str, Any]) -> Decimal | None:
    """Return what a row says that it moved; None if that can't be read."""
    if row.get(report["charges"]["column"], "") not in report["charges"]["values"]:
        return Decimal(0)
    try:
        of = next(one for one in report["amounts"] if row.get(one["unit"], "") == one["is"])
        found = Decimal(row[of["column"]]) * Decimal(of["gb"])
    except (StopIteration, KeyError, ArithmeticError):
        return None
    return found if found.is_finite() else None
