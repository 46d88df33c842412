"""Draws docs/relay-gain.svg: ``python -m scripts.draw_relay_gain grid.db``.

Takes the store that the import commands of docs/model.md make.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import relayd
from scripts.console_blocks import ROOT

PROVIDERS = ("aws", "azure", "gcp")
NAMES = {"aws": "AWS", "azure": "Azure", "gcp": "GCP"}
# Okabe and Ito's palette, told apart by colour-blind people too.
SERIES = ((64, "#0072B2", "64 connections a VM"), (1, "#E69F00", "one connection"))
LEFT, TOP, WIDTH, ROW, BAR = 150, 64, 460, 44, 15


def shares(db: Path, connections: int) -> dict[tuple[str, str], float]:
    """Return, by pair of providers, the share of region pairs that gain 1.2x or more."""
    gain = relayd.open(db).matrix("relay-gain", connections, measured_only=True)
    provider = np.array([region.partition(":")[0] for region in gain.regions])
    found = {}
    for src in PROVIDERS:
        for dst in PROVIDERS:
            values = gain.values[np.ix_(provider == src, provider == dst)]
            found[src, dst] = float(np.mean(values[~np.isnan(values)] >= 1.2))
    return found


def draw(db: Path) -> str:
    """Return the chart as SVG."""
    by_series = [(shares(db, connections), colour, name) for connections, colour, name in SERIES]
    rows = [(src, dst) for src in PROVIDERS for dst in PROVIDERS]
    height = TOP + ROW * len(rows) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 60} {height}" '
        'font-family="system-ui, sans-serif" font-size="13">',
        "<title>Share of region pairs that gain 1.2x or more from the best relay</title>",
        f'<rect width="{LEFT + WIDTH + 60}" height="{height}" fill="#ffffff"/>',
        '<text x="16" y="24" font-size="15" font-weight="600" fill="#222">Region pairs that gain '
        "1.2x or more from the best relay</text>",
    ]
    x = LEFT
    for _, colour, name in by_series:
        parts.append(f'<rect x="{x}" y="38" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 18}" y="49" fill="#222">{name}</text>')
        x += 190
    for percent in (0, 25, 50, 75, 100):
        x = LEFT + WIDTH * percent // 100
        bottom = TOP + ROW * len(rows)
        parts.append(f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{bottom}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{x}" y="{bottom + 18}" text-anchor="middle" fill="#555">{percent} %</text>'
        )
    for row, (src, dst) in enumerate(rows):
        y = TOP + ROW * row + 6
        parts.append(
            f'<text x="{LEFT - 12}" y="{y + 20}" text-anchor="end" fill="#222">'
            f"{NAMES[src]} to {NAMES[dst]}</text>"
        )
        for k, (share, colour, _) in enumerate(by_series):
            width = max(1, round(WIDTH * share[src, dst]))
            top = y + k * (BAR + 1)
            parts.append(
                f'<rect x="{LEFT}" y="{top}" width="{width}" height="{BAR}" fill="{colour}"/>'
            )
            parts.append(
                f'<text x="{LEFT + width + 6}" y="{top + 12}" font-size="12" fill="#333">'
                f"{share[src, dst]:.0%}</text>"
            )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    (ROOT / "docs" / "relay-gain.svg").write_text(draw(Path(sys.argv[1])))
