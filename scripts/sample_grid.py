"""Makes examples/grid.csv: ``python -m scripts.sample_grid``.

A made-up grid to try commands on, not measurements: nine regions of three clouds, whose round trips
follow from great circles at 1.4 times the way of light in fibre, windows of 4 MB, caps of one VM of
5 (AWS), 12 (Azure) and 7 Gbit/s (Google Cloud), and paths from Azure to others that carry 2 Gbit/s.
"""

from __future__ import annotations

import csv
from itertools import permutations
from math import asin, cos, radians, sin, sqrt

from scripts.console_blocks import ROOT

PLACES = {
    "aws:us-east-1": (39.0, -77.5),
    "azure:eastus": (39.0, -77.5),
    "gcp:us-east4": (39.0, -77.5),
    "aws:sa-east-1": (-23.6, -46.6),
    "aws:eu-central-1": (50.1, 8.7),
    "azure:westeurope": (52.4, 4.9),
    "aws:ap-northeast-1": (35.7, 139.7),
    "azure:japaneast": (35.7, 139.7),
    "gcp:asia-northeast1": (35.7, 139.7),
}
CAPS_MBPS = {"aws": 5000.0, "azure": 12000.0, "gcp": 7000.0}
AZURE_TO_OTHERS_MBPS = 2000.0
WINDOW_MB = 4.0
EARTH_KM, FIBRE_KM_PER_MS, DETOUR = 6371.0, 200.0, 1.4


def rtt_ms(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Return the round trip between two places, (latitude, longitude)."""
    (lat, lon), (other_lat, other_lon) = (tuple(map(radians, place)) for place in (a, b))
    part = sin((other_lat - lat) / 2) ** 2
    part += cos(lat) * cos(other_lat) * sin((other_lon - lon) / 2) ** 2
    return 1.0 + 2 * DETOUR * 2 * EARTH_KM * asin(sqrt(part)) / FIBRE_KM_PER_MS


def main() -> None:
    """Write the file."""
    with (ROOT / "examples" / "grid.csv").open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["src", "dst", "rtt_ms", "per_flow_mbps", "aggregate_mbps", "connections"])
        for src, dst in permutations(PLACES, 2):
            ends = [name.partition(":")[0] for name in (src, dst)]
            rtt = rtt_ms(PLACES[src], PLACES[dst])
            most = min(CAPS_MBPS[end] for end in ends)
            if ends[0] == "azure" != ends[1] and rtt > 10:
                most = AZURE_TO_OTHERS_MBPS
            flow = min(8 * WINDOW_MB / rtt * 1000, most, 5000.0)
            writer.writerow(
                [src, dst, f"{rtt:.1f}", f"{flow:.0f}", f"{min(64 * flow, most):.0f}", 64]
            )


if __name__ == "__main__":
    main()
