"""``relayd study bill``: what traffic cost by a bill, by prices, and by other ways."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

from planner.model.errors import FormatError, InputError, RelaydError
from planner.model.pricing import (
    CataloguePrices,
    Pair,
    metered_usd_per_gb,
    provider_of,
    usd_per_gb_or_inf,
)
from planner.model.text.page import cells_of
from relayd.bills import INTERNET, Bill, read_bill
from relayd.cli.options import wan_of
from relayd.cli.output import print_rows, write_text
from relayd.cli.text import BOLD, page
from relayd.files import belongs_elsewhere, read_text
from relayd.report.document import Report, Section, Table
from relayd.report.rendering import bars, html, svg_drawer
from relayd.sources.wan import Wan

_BUCKETS = {"aws": "s3://bucket", "gcp": "gs://bucket", "azure": "az://account/bucket"}
_PRICES = (
    "Prices are the catalogue's for egress at the tiers of a mean month, to the internet as to "
    "another provider on the continent; direct and other ways have VMs, too."
)
_MOST_DRAWN = 30
_COLUMNS = (
    "traffic=to | rows | volume_gb | $ paid=paid_usd | $ by prices=list_usd | $ direct=direct_usd "
    "| a month takes=direct_s | cheapest other way=other | $ so=other_usd | takes=other_s"
)


def run(options: argparse.Namespace) -> int:
    """Print each pair of a bill, and all else that was paid, so that the sum is the bill's."""
    wan = wan_of(options)
    text = read_text(options.file, "bill")
    bill = read_bill(text, options.file, wan.catalogue)
    if bill is None:
        remedy = "Known are AWS's CUR, Azure's cost export and Google Cloud's billing export."
        unknown = FormatError(options.file, "is no bill that relayd knows", remedy=remedy)
        raise belongs_elsewhere(text, options.file, "study bill") or unknown
    if bill.currency != "USD":
        remedy = "Prices are in USD: export costs in USD."
        raise InputError(options.file, f"is in {bill.currency}", remedy=remedy)
    rows = _compared(bill, wan)
    total = float(sum(bill.paid.values()))
    head = f"{bill.what}, {bill.span}: {bill.rows.total():,} rows, {total:,.2f} USD paid"

    def shown() -> str:
        of = page()
        listed = of.table_of(rows, _COLUMNS, to=_named)
        return f"{of.styled(head, BOLD)}\n\n{listed}\n\n{of.filled(_PRICES)}"

    if Path(options.output or "").suffix.lower() in {".html", ".htm"}:
        drawn = svg_drawer("report", "draw the chart of a bill (csv and json need none)")
        write_text(options.output, html(_report(head, rows), drawn))
        return 0
    about = {"what": bill.what, "span": bill.span, "paid_usd": total, "traffic": rows}
    return print_rows(options, "traffic", rows, shown=shown, document=lambda: about)


def _named(row: Mapping[str, Any]) -> str:
    return " -> ".join({row["src"]: 0, row["dst"]: 0})


_KINDS = {
    "paid_usd": "paid",
    "list_usd": "by prices",
    "direct_usd": "direct, with VMs",
    "other_usd": "cheapest other way",
}


def _report(head: str, rows: list[dict[str, Any]]) -> Report:
    """Return a chart of the dearest lines of a bill that can be compared, and a table of all."""
    about = Section("bill", "What was paid, and what it would cost", _PRICES)
    about.samples = sum(row["rows"] for row in rows)
    about.say(f"{head}.")
    compared = [row for row in rows if row["list_usd"] is not None][:_MOST_DRAWN]
    kinds = [(_named(row), text, row[key]) for row in compared for key, text in _KINDS.items()]
    if drawn := [one for one in kinds if one[2] is not None]:
        caption = f"What traffic cost by the bill, and by other ways: the dearest {len(compared)}."
        about.charts.append(bars(caption, "USD, over all months of the bill", drawn))
    header, lines = cells_of(rows, _COLUMNS, to=_named)
    about.tables.append(Table("All lines, which add up to the bill", header, lines))
    return Report("Traffic on a bill", {}, [about])


def _compared(bill: Bill, wan: Wan) -> list[dict[str, Any]]:
    """Return the lines of a bill, the dearest first, over all its months, with what is known."""
    regions, prices = wan.catalogue.regions, CataloguePrices(wan.catalogue, wan.network)
    unknown = dict.fromkeys(("list_usd", "direct_usd", "direct_s", "other", "other_usd", "other_s"))
    rows, found = dict[Pair, dict[str, Any]](), list[dict[str, Any]]()
    for (src, dst), paid in sorted(bill.paid.items(), key=lambda item: -item[1]):
        gb, end = float(bill.volume_gb[src, dst]), dst
        line = {"src": src, "dst": dst, "rows": bill.rows[src, dst], "volume_gb": gb}
        found.append({**line, "paid_usd": float(paid), **unknown})
        if dst == INTERNET:
            here, others = regions[src], regions.values()
            near = (r.id for r in others if r.continent == here.continent)
            end = next((one for one in near if provider_of(one) != here.provider), "")
        if ":" in end and gb > 0 and usd_per_gb_or_inf(prices, src, end, gb) < inf:
            rows[src, end] = found[-1]
    monthly_gb = {ends: row["volume_gb"] / bill.months for ends, row in rows.items()}
    for ends, usd_per_gb in metered_usd_per_gb(prices, monthly_gb).items():
        rows[ends]["list_usd"] = usd_per_gb * rows[ends]["volume_gb"]
        if rows[ends]["dst"] != INTERNET:
            rows[ends] |= _ways(wan, *ends, monthly_gb[ends], bill.months)
    return found


def _ways(wan: Wan, src: str, dst: str, volume_gb: float, months: int) -> dict[str, Any]:
    """Return what plans of a month's volume say: with VMs, through relays, and by services."""
    stores = [_BUCKETS.get(provider_of(end), "") for end in (src, dst)]
    try:
        plan = wan.plan(src, dst, volume_gb=volume_gb, objective="cost")
        relays = [plan.best_relay, *plan.alternatives] if plan.best_relay else []
        ways: list[Any] = [(r.cost_usd.total, f"relay {r.relay}", r.duration_s) for r in relays]
        if all(stores):
            ends = [f"{store}?region={end}" for store, end in zip(stores, (src, dst), strict=True)]
            copied = wan.plan(*ends, volume_gb=volume_gb)
            ways += [(one.cost_usd, one.name, None) for one in copied.services]
    except RelaydError:  # of a pair without a path, or one that is down
        return {}
    direct_usd = plan.direct.cost_usd and plan.direct.cost_usd.total * months
    usd, other, other_s = min(ways, key=lambda way: way[0], default=(None, None, None))
    told = {"direct_usd": direct_usd, "direct_s": plan.direct.duration_s, "other": other}
    return {**told, "other_usd": usd and usd * months, "other_s": other_s}
