"""Draws the figures of docs/: with matplotlib (the ``study`` group).

:mod:`scripts.shuffle_study` draws its own. ``python -m scripts.figures grid.db`` draws
docs/relay-gain.svg, of the store that the import commands of docs/model.md make.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("svg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

import relayd
from scripts.console_blocks import ROOT
from scripts.shuffle_study import NAMES, PROVIDERS, Case

# Okabe and Ito's palette, told apart by colour-blind people too; shapes differ as well.
STYLES = {
    "uniform": ("#0072B2", "o"),
    "skewed": ("#E69F00", "s"),
    "hot destination": ("#009E73", "^"),
}
OF_CONNECTIONS = {64: ("#0072B2", "64 connections a VM"), 1: ("#E69F00", "one connection")}
TITLES = {"caps": "Measured caps, 64 connections a VM", "flow": "Two TCP flows a transfer"}
GAINS = {
    "planning": "planning: the best direct\nrates over no plan",
    "relaying": "relaying over the\nbest direct rates",
}


def new_figure(rows: int = 1, columns: int = 1, **more: Any) -> tuple[Figure, Any]:
    """Return a figure with its axes, in the style of all."""
    style = {"svg.hashsalt": "relayd", "svg.fonttype": "none", "font.family": "sans-serif"}
    mpl.rcParams.update({**style, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(rows, columns, **more)
    return figure, axes


def draw_gains(cases: Sequence[Case], file: Path) -> None:
    """Draw medians and quartiles of both gains by number of sites, a column a view."""
    figure, axes = new_figure(2, 2, figsize=(8.4, 5.6), sharex=True, sharey="row")
    sizes = sorted({case.sites for case in cases})
    for column, (view, title) in enumerate(TITLES.items()):
        for row, (what, label) in enumerate(GAINS.items()):
            axis = axes[row][column]
            for k, (demands, (colour, mark)) in enumerate(STYLES.items()):
                some = [case for case in cases if (case.view, case.demands) == (view, demands)]
                values = [[getattr(c, what) for c in some if c.sites == n] for n in sizes]
                low, middle, high = np.array([np.quantile(v, [0.25, 0.5, 0.75]) for v in values]).T
                at = np.arange(len(sizes)) + 0.14 * (k - 1)
                style = {"color": colour, "marker": mark, "markersize": 6, "linewidth": 1.4}
                quartiles = [middle - low, high - middle]
                axis.errorbar(at, middle, quartiles, capsize=3, label=demands, **style)
            axis.axhline(1.0, color="#999", linewidth=0.8)
            axis.set_xticks(range(len(sizes)), [str(n) for n in sizes])
            if what == "planning":  # from nothing to twenty times
                axis.set_yscale("log")
                axis.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
                axis.minorticks_off()
            axis.grid(axis="y", color="#e4e4e4")
            axis.set_axisbelow(True)
            if row == 0:
                axis.set_title(title, fontsize=11)
            else:
                axis.set_xlabel("sites")
            if column == 0:
                axis.set_ylabel(f"{label}\n(times sooner)")
    axes[0][0].legend(frameon=False, fontsize=9)
    save(figure, file)


def draw_fees(cases: Sequence[Case], file: Path) -> None:
    """Draw the time that each relayed shuffle saves against the egress fees that it adds."""
    figure, axes = new_figure(1, 2, figsize=(8.4, 3.6), sharex=True, sharey=True)
    for axis, (view, title) in zip(axes, TITLES.items(), strict=True):
        for demands, (colour, mark) in STYLES.items():
            some = [c for c in cases if (c.view, c.demands) == (view, demands)]
            at = [c.relaying for c in some], [c.fees for c in some]
            style = {"color": colour, "marker": mark, "alpha": 0.6, "linewidths": 0}
            axis.scatter(*at, s=16, label=demands, **style)
        axis.axline((1, 1), slope=1, color="#999", linewidth=0.8, linestyle="--")
        axis.set_title(title, fontsize=11)
        axis.set_xlabel("relaying: times sooner")
        axis.grid(color="#e4e4e4")
        axis.set_axisbelow(True)
    axes[0].set_ylabel("egress fees over direct")
    axes[0].legend(frameon=False, fontsize=9)
    save(figure, file)


def draw_relay_gain(db: Path, file: Path) -> None:
    """Draw the share of region pairs that gain 1.2x or more, by pair of providers."""
    figure, axis = new_figure(figsize=(6.6, 4.8))
    pairs = list(product(PROVIDERS, PROVIDERS))
    places = np.arange(len(pairs))
    for below, (connections, (colour, name)) in zip(
        (-0.2, 0.2), OF_CONNECTIONS.items(), strict=True
    ):
        gain = relayd.open(db).matrix("relay-gain", connections, measured_only=True)
        of = np.array([region.partition(":")[0] for region in gain.regions])
        values = [gain.values[np.ix_(of == a, of == b)] for a, b in pairs]
        found = [float(np.mean(some[~np.isnan(some)] >= 1.2)) for some in values]
        bars = axis.barh(places + below, found, 0.36, color=colour, label=name)
        axis.bar_label(bars, [f"{share:.0%}" for share in found], padding=3, fontsize=9)
    axis.set_yticks(places, [f"{NAMES[a]} to {NAMES[b]}" for a, b in pairs])
    axis.invert_yaxis()
    axis.xaxis.set_major_formatter("{x:.0%}")
    axis.set_title("Region pairs that gain 1.2x or more from the best relay", fontsize=11)
    axis.set_xlim(0, 1)
    axis.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=2)
    save(figure, file)


def save(figure: Figure, file: Path) -> None:
    """Write a figure as SVG, the same bytes each time."""
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    # Lines end without spaces, so that a diff of the picture is of the picture.
    file.write_text("\n".join(line.rstrip() for line in file.read_text().splitlines()) + "\n")


if __name__ == "__main__":
    draw_relay_gain(Path(sys.argv[1]), ROOT / "docs" / "relay-gain.svg")
