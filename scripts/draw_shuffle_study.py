"""Draws the figures of docs/shuffle-study.md, for :mod:`scripts.shuffle_study`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("svg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from scripts.shuffle_study import Case

# Okabe and Ito's palette, told apart by colour-blind people too; shapes differ as well.
STYLES = {
    "uniform": ("#0072B2", "o"),
    "skewed": ("#E69F00", "s"),
    "hot destination": ("#009E73", "^"),
}
TITLES = {"caps": "Measured caps, 64 connections a VM", "flow": "Two TCP flows a transfer"}
GAINS = {
    "planning": "planning: the best direct\nrates over no plan",
    "relaying": "relaying over the\nbest direct rates",
}


def new_figure(rows: int = 1, columns: int = 1, **more: Any) -> tuple[Figure, Any]:
    """Return a figure with its axes, in the style of all."""
    mpl.rcParams.update(
        {
            "svg.hashsalt": "relayd",
            "svg.fonttype": "none",
            "font.family": "sans-serif",
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
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
                values = [
                    [
                        getattr(c, what)
                        for c in cases
                        if (c.view, c.demands, c.sites) == (view, demands, n)
                    ]
                    for n in sizes
                ]
                low, middle, high = np.array([np.quantile(v, [0.25, 0.5, 0.75]) for v in values]).T
                at = np.arange(len(sizes)) + 0.14 * (k - 1)
                axis.errorbar(
                    at,
                    middle,
                    [middle - low, high - middle],
                    color=colour,
                    marker=mark,
                    markersize=6,
                    capsize=3,
                    linewidth=1.4,
                    label=demands,
                )
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
            axis.scatter(
                [c.relaying for c in some],
                [c.fees for c in some],
                s=16,
                color=colour,
                marker=mark,
                alpha=0.6,
                linewidths=0,
                label=demands,
            )
        axis.axline((1, 1), slope=1, color="#999", linewidth=0.8, linestyle="--")
        axis.set_title(title, fontsize=11)
        axis.set_xlabel("relaying: times sooner")
        axis.grid(color="#e4e4e4")
        axis.set_axisbelow(True)
    axes[0].set_ylabel("egress fees over direct")
    axes[0].legend(frameon=False, fontsize=9)
    save(figure, file)


def save(figure: Figure, file: Path) -> None:
    """Write a figure as SVG, the same bytes each time."""
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    # Lines end without spaces, so that a diff of the picture is of the picture.
    file.write_text("\n".join(line.rstrip() for line in file.read_text().splitlines()) + "\n")
