"""``relayd study bill``: what traffic cost by a bill, by prices, and by other ways."""

from __future__ import annotations

import argparse
from typing import Any

from planner.model.errors import FormatError
from planner.model.units import volume_text
from relayd.cli.options import wan_of
from relayd.cli.output import print_rows
from relayd.cli.text import BOLD, filled, styled, table, table_of
from relayd.demands.bills import Bill, read_bill
from relayd.demands.study import study_bill
from relayd.files import read_text

_SHOWN = 30
_PRICES = (
    "Prices are the catalogue's for egress at the tiers of a mean month, to the internet as to "
    "another provider on the continent; direct and other ways have VMs, too."
)


def run(options: argparse.Namespace) -> int:
    """Print each pair of a bill, and all else that was paid, so that the sum is the bill's."""
    wan = wan_of(options)
    bill = read_bill(read_text(options.file, "bill"), options.file, wan.catalogue)
    if bill is None:
        remedy = "Known are AWS's CUR, Azure's cost export and Google Cloud's billing export."
        raise FormatError(options.file, "is no bill that relayd knows", remedy=remedy)
    rows = [row | {"paid_usd": float(row["paid_usd"])} for row in study_bill(bill, wan)]
    about = {"what": bill.what, "span": bill.span, "paid_usd": float(bill.paid), "traffic": rows}
    return print_rows(
        options, "traffic", rows, shown=lambda: _human(bill, rows), document=lambda: about
    )


def _human(bill: Bill, rows: list[dict[str, Any]]) -> str:
    count = sum(row["rows"] for row in rows)
    pairs = [row for row in rows if row["list_usd"] is not None]
    rest: dict[str, list[float]] = {}
    for row in rows:
        if row["list_usd"] is None:
            sums = rest.setdefault(row["dst"], [0, 0.0, 0.0])
            rest[row["dst"]] = [
                a + row[b] for a, b in zip(sums, ("rows", "volume_gb", "paid_usd"), strict=True)
            ]
    cells = [[to, f"{n:,}", volume_text(gb), f"{usd:,.2f}"] for to, (n, gb, usd) in rest.items()]
    compared = table_of(
        pairs[:_SHOWN],
        "traffic | volume_gb | $ paid=paid_usd | $ by prices=list_usd | $ direct=direct_usd | "
        "a month takes=direct_s | cheapest other way=other | $ so=other_usd | takes=other_s",
        traffic=lambda row: f"{row['src']} -> {row['dst']}",
    )
    more = f"{len(pairs) - _SHOWN} more: see --json or --format csv." if pairs[_SHOWN:] else ""
    head = f"{bill.what}, {bill.span}, {count:,} rows, {bill.money(bill.paid)} paid"
    others = table(["not compared", "rows", "volume", "$ paid"], cells) if cells else ""
    return "\n\n".join(filter(None, [styled(head, BOLD), compared, more, others, filled(_PRICES)]))
