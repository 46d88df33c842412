"""``relayd plan --many``: the decisions on the transfers of a file."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np

from planner.fields.specified import fields_of
from planner.model.errors import InputError
from relayd.cli.output import print_rows
from relayd.cli.questions.options import request_from, rows_of_transfers, take_positions
from relayd.cli.text import page
from relayd.questions.decisions import columns_of
from relayd.sources.wan import Wan

A_TIME, QUIET_S = 5000, 2.0
"""Transfers that are decided at a time; and after how long each time is told."""


def decide(wan: Wan, options: argparse.Namespace) -> int:
    """Decide the transfers of a file, with the settings of the options, and print the rows."""
    take_positions(options, options.request)
    known = fields_of(options.request)
    unitless = {field.unitless: name for name, field in known.items()}
    rows = [
        {unitless.get(name, name): value for name, value in row.items() if value != ""}
        for row in rows_of_transfers(options.many, "--many", options)
    ]
    listed = {name: [row.get(name) for row in rows] for row in rows for name in row}
    for end in ("src", "dst"):
        given = getattr(options, end)
        if given is None and None in listed.get(end, [None]):
            row = listed[end].index(None) + 1 if end in listed else 1
            raise InputError(end, f"is missing in row {row} of --many")
        setattr(options, end, given or listed[end][0])
    settings = request_from(options, options.request).to_json()
    for name, values in listed.items():  # where a row says nothing, the options do
        otherwise = settings.get(name, known[name].default if name in known else None)
        listed[name] = [otherwise if value is None else value for value in values]
    whole, parts, began_s = columns_of({**settings, **listed}), list[Any](), time.monotonic()
    for first in range(0, whole.count, A_TIME):
        part = whole.part(first, A_TIME)
        try:
            parts.append(wan.decide(**part.settings, **part.listed, splits=options.splits))
        except InputError as fault:
            raise fault.within(f"(after {first:,})") if first else fault from None
        if time.monotonic() - began_s > QUIET_S and first + A_TIME < whole.count:
            print(f"{first + A_TIME:,} of {whole.count:,} decided", file=sys.stderr)
    found = np.concatenate(parts)
    names, decided = found.dtype.names or (), found.tolist()
    lines: list[list[Any]] = [[None if one != one else one for one in row] for row in decided]

    def shown() -> str:
        cells = [
            ["-" if v is None else f"{v:.4g}" if isinstance(v, float) else str(v) for v in line]
            for line in lines
        ]
        return page().table(names, cells, left=True)

    of_each = [dict(zip(names, line, strict=True)) for line in lines]
    return print_rows(options, "decisions", of_each, shown=shown)
