"""Draws docs/relay-gain.svg: ``python -m scripts.draw_relay_gain grid.db``.

Takes the store that the import commands of docs/model.md make. Needs matplotlib (the ``study``
group).
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import numpy as np

import relayd
from scripts.console_blocks import ROOT
from scripts.draw_shuffle_study import new_figure, save

NAMES = {"aws": "AWS", "azure": "Azure", "gcp": "GCP"}
# Okabe and Ito's palette, told apart by colour-blind people too.
SERIES = {64: ("#0072B2", "64 connections a VM"), 1: ("#E69F00", "one connection")}


def shares(db: Path, connections: int) -> list[float]:
    """Return, by pair of providers, the share of region pairs that gain 1.2x or more."""
    gain = relayd.open(db).matrix("relay-gain", connections, measured_only=True)
    provider = np.array([region.partition(":")[0] for region in gain.regions])
    values = [gain.values[np.ix_(provider == a, provider == b)] for a, b in product(NAMES, NAMES)]
    return [float(np.mean(some[~np.isnan(some)] >= 1.2)) for some in values]


def draw(db: Path, file: Path) -> None:
    """Draw the chart as SVG."""
    figure, axis = new_figure(figsize=(6.6, 4.8))
    places = np.arange(len(NAMES) ** 2)
    for below, (connections, (colour, name)) in zip((-0.2, 0.2), SERIES.items(), strict=True):
        found = shares(db, connections)
        bars = axis.barh(places + below, found, 0.36, color=colour, label=name)
        axis.bar_label(bars, [f"{share:.0%}" for share in found], padding=3, fontsize=9)
    axis.set_yticks(places, [f"{NAMES[a]} to {NAMES[b]}" for a, b in product(NAMES, NAMES)])
    axis.invert_yaxis()
    axis.xaxis.set_major_formatter("{x:.0%}")
    axis.set_title("Region pairs that gain 1.2x or more from the best relay", fontsize=11)
    axis.set_xlim(0, 1)
    axis.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=2)
    save(figure, file)


if __name__ == "__main__":
    draw(Path(sys.argv[1]), ROOT / "docs" / "relay-gain.svg")
