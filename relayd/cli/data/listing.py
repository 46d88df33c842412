"""``relayd regions``, ``links`` and ``matrix``: tables or JSON of the network."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from math import isnan
from typing import Any

from planner.model.aliases import resolve_many
from planner.model.catalogue import Region
from planner.model.document import link_as_json, regions_as_json
from planner.model.estimate import Estimate
from planner.model.link import LINK_FIGURES, Link
from relayd.cli import text
from relayd.cli.options import wan_of, whole_number
from relayd.cli.output import Row, print_rows
from relayd.sources.wan import Wan
from relayd.tables.matrices import Matrix
from relayd.times import utc_text


def regions(options: argparse.Namespace) -> int:
    """List regions with their aliases."""
    wan = wan_of(options)
    listed = regions_as_json(_selected(wan, options), wan.sites(), wan.catalogue)
    cells = [
        (
            *(region[key] for key in ("id", "city", "country", "continent", "access")),
            region["vm_type"].partition(":")[2],
            " ".join(region["aliases"]),
        )
        for region in listed
    ]
    header = ("region", "city", "country", "continent", "access", "VM type", "aliases")
    return print_rows(
        options,
        "regions",
        listed,
        shown=lambda: text.left_table(header, cells),
        document=lambda: {"snapshot": asdict(wan.snapshot), "regions": listed},
    )


def _selected(wan: Wan, options: argparse.Namespace) -> list[Region]:
    """Return the regions that all the rules of a command line cover."""
    found = wan.regions()
    for field, rules in (
        ("region", options.rules),
        ("--provider", [f"provider:{name}" for name in options.provider]),
        ("--country", [f"country:{name}" for name in options.country]),
    ):
        if rules:
            known = [region.id for region in found]
            covered = resolve_many(rules, wan.catalogue, field=field, known=known).certain
            found = [region for region in found if region.id in covered]
    return found


def links(options: argparse.Namespace) -> int:
    """List links with their estimates."""
    wan = wan_of(options)
    ends = ((options.src, "--src"), (options.dst, "--dst"))
    links = wan.links(*(name and wan.resolve(name, option).region_id for name, option in ends))
    now_s = time.time()
    cells = [
        (
            f"{link.src} -> {link.dst}" + (" (private)" if link.address == "private" else ""),
            f"{link.rtt_ms.expected:.1f}",
            f"{link.per_flow_mbps.expected:.0f}",
            f"{link.aggregate_gbps.expected:.2f}",
            f"{link.aggregate_gbps.low:.2f}-{link.aggregate_gbps.high:.2f}",
            link.aggregate_gbps.source,
            _age(link.aggregate_gbps, now_s),
        )
        for link in links
    ]
    header = ("link", "RTT ms", "flow Mbit/s", "VM pair Gbit/s", "bounds", "source", "age")
    return print_rows(
        options,
        "links",
        [_row(link) for link in links],
        shown=lambda: text.table(header, cells),
        document=lambda: {
            "snapshot": asdict(wan.snapshot),
            "links": [link_as_json(link) for link in links],
        },
    )


def _row(link: Link) -> dict[str, object]:
    row: dict[str, object] = {"src": link.src, "dst": link.dst}
    for name in LINK_FIGURES:
        estimate: Estimate = getattr(link, name)
        row |= {name: estimate.expected}
        row |= {f"{name}_{part}": getattr(estimate, part) for part in ("low", "high", "source")}
        at_s = estimate.measured_at_s
        row |= {f"{name}_measured_at": None if at_s is None else utc_text(at_s)}
        row |= {f"{name}_samples": estimate.samples}
    return row | {"loss_pct": link.loss_pct, "limited_by": link.limited_by, "address": link.address}


def matrix(options: argparse.Namespace) -> int:
    """Print one figure for all pairs: as coloured cells on a terminal, else tab-separated."""
    wan = wan_of(options)
    chosen = {}
    if options.connections:
        chosen["connections"] = whole_number(options.connections, "--connections")
    found = wan.matrix(options.metric, **chosen, measured_only=options.measured)
    if options.summary:
        return _summary(found, options)
    return print_rows(
        options,
        "pairs",
        _Pairs(found),
        shown=lambda: heat_map(found) if sys.stdout.isatty() else _by_tabs(found),
        document=lambda: {**_described(found), **_values(found)},
    )


class _Pairs(Sequence[Row]):
    """A row for each pair with a value, made when it is asked for."""

    def __init__(self, found: Matrix) -> None:
        self._found = found
        self._at = (found.values == found.values).ravel().nonzero()[0]  # NaN is not itself

    def __len__(self) -> int:
        return len(self._at)

    def __getitem__(self, position: Any) -> Any:
        regions, values = self._found.regions, self._found.values
        src, dst = divmod(int(self._at[position]), len(regions))
        return {
            "src": regions[src],
            "dst": regions[dst],
            self._found.metric: float(values[src, dst]),
        }


def _values(found: Matrix) -> dict[str, Any]:
    values = [[None if isnan(v) else v for v in row] for row in found.values.tolist()]
    return {"regions": list(found.regions), "values": values, "sources": found.sources}


def _by_tabs(found: Matrix) -> str:
    lines = ["\t".join([f"{found.metric} ({found.unit})", *found.regions])]
    for region, row in zip(found.regions, found.values, strict=True):
        lines.append("\t".join([region, *("" if isnan(v) else f"{v:.4g}" for v in row.tolist())]))
    return "\n".join(lines)


def _described(found: Matrix) -> dict[str, Any]:
    return {"snapshot": asdict(found.snapshot), "metric": found.metric, "unit": found.unit}


def _summary(found: Matrix, options: argparse.Namespace) -> int:
    """Sum a matrix up by pair of providers."""
    groups: dict[str, list[float]] = {}
    for src, row in zip(found.regions, found.values.tolist(), strict=True):
        for dst, value in zip(found.regions, row, strict=True):
            if not isnan(value):
                pair = f"{src.partition(':')[0]} -> {dst.partition(':')[0]}"
                groups.setdefault(pair, []).append(value)
    gain = found.metric == "relay-gain"
    summed: list[dict[str, Any]] = []
    for pair, values in sorted(groups.items()):
        values.sort()
        summed.append(
            {
                "providers": pair,
                "pairs": len(values),
                "p10": values[len(values) // 10],
                "median": values[len(values) // 2],
                "p90": values[len(values) * 9 // 10],
                **(
                    {"share_at_least_1.2": sum(v >= 1.2 for v in values) / len(values)}
                    if gain
                    else {}
                ),
            }
        )
    header = [f"{found.metric} ({found.unit})", "pairs", "p10", "median", "p90"]
    rows = [
        [s["providers"], str(s["pairs"]), *(f"{s[k]:.3g}" for k in ("p10", "median", "p90"))]
        for s in summed
    ]
    if gain:
        header.append("1.2x or more")
        for row, s in zip(rows, summed, strict=True):
            row.append(f"{s['share_at_least_1.2']:.0%}")
    return print_rows(
        options,
        "summary",
        summed,
        shown=lambda: text.table(header, rows),
        document=lambda: {**_described(found), "summary": summed},
    )


def _age(estimate: Estimate, now_s: float) -> str:
    if estimate.measured_at_s is None:
        return "-"
    days = max(0.0, (now_s - estimate.measured_at_s) / 86400)
    return f"{days:.1f} d" if days < 100 else f"{days / 365.25:.1f} y"


# Of the 256 colours of a terminal (https://en.wikipedia.org/wiki/ANSI_escape_code#8-bit): from dark
# to light, so that the order shows without colour vision; and the same without colours.
_COLOURS = ("17", "19", "25", "31", "37", "78", "149", "227")
_SHADES = (" .", "..", ":.", "::", "+:", "++", "#+", "##")
_NARROW_SHADES = ".:-=+*#@"


def heat_map(found: Matrix) -> str:
    """Return a legend, and a row for each source with two characters a destination.

    Classes hold equally many pairs. Where a terminal is too narrow, a destination has one
    character; where that does not suffice, blocks of destinations follow each other.
    """
    values = found.values.tolist()
    known = sorted(v for row in values for v in row if not isnan(v))
    names = list(found.regions)
    if not known:
        return "No pair has a value."
    bounds = [known[len(known) * k // len(_COLOURS)] for k in range(len(_COLOURS))]
    name_width = max(map(len, names))
    room = max(1, text.columns() - name_width - 1)
    width = 2 if 2 * len(names) <= room else 1
    lines = [*_legend(f"{found.metric} ({found.unit}):", bounds, known[-1], width), ""]
    for first in range(0, len(names), room // width):
        block = slice(first, first + room // width)
        if len(names[block]) < len(names):
            lines.append(f"To {names[block][0]} ... {names[block][-1]}:")
        for name, row in zip(names, values, strict=True):
            cells = "".join(
                " " * width if isnan(v) else _cell(_class_of(v, bounds), width) for v in row[block]
            )
            lines.append(f"{name.rjust(name_width)} {cells}".rstrip())
        lines.append("")
    told = "Rows send; columns receive, in the same order. `--format csv` has the figures."
    return "\n".join([*lines, text.filled(told)])


def _class_of(value: float, bounds: Sequence[float]) -> int:
    return max(k for k, least in enumerate(bounds) if value >= least)


def _cell(k: int, width: int) -> str:
    shade = _SHADES[k] if width == 2 else _NARROW_SHADES[k]
    return text.styled(" " * width, f"48;5;{_COLOURS[k]}", otherwise=shade)


def _legend(title: str, bounds: Sequence[float], most: float, width: int) -> list[str]:
    """Return lines with the title and each class, its colour before its values."""
    lines, used = [title], len(title)
    for k, (least, end) in enumerate(zip(bounds, [*bounds[1:], most], strict=True)):
        if end <= least and k < len(bounds) - 1:
            continue
        values = f"{least:.3g}-{end:.3g}"
        needed = 2 + width + 1 + len(values)
        if used + needed > text.columns():
            lines, used = [*lines, ""], 0
        lines[-1] += f"  {_cell(k, width)} {values}"
        used += needed
    return lines
