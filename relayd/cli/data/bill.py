"""``relayd study bill``: what traffic cost by a bill, by prices, and by other ways."""

from __future__ import annotations

import argparse

from planner.model.errors import FormatError
from relayd.cli.options import wan_of
from relayd.cli.output import print_rows
from relayd.cli.text import BOLD, filled, styled, table_of
from relayd.demands.bills import read_bill
from relayd.demands.study import study_bill
from relayd.files import read_text

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
    about = {"what": bill.what, "span": bill.span, "paid_usd": float(bill.paid)}

    def shown() -> str:
        count = sum(row["rows"] for row in rows)
        head = f"{bill.what}, {bill.span}: {count:,} rows, {bill.money(bill.paid)} paid"
        listed = table_of(
            rows,
            "traffic=to | rows | volume_gb | $ paid=paid_usd | $ by prices=list_usd | $ direct="
            "direct_usd | a month takes=direct_s | cheapest other way=other | $ so=other_usd | "
            "takes=other_s",
            to=lambda row: " -> ".join(dict.fromkeys((row["src"], row["dst"]))),
        )
        return f"{styled(head, BOLD)}\n\n{listed}\n\n{filled(_PRICES)}"

    document = {**about, "traffic": rows}
    return print_rows(options, "traffic", rows, shown=shown, document=lambda: document)
