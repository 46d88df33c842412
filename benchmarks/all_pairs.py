"""The best single relay for all pairs at once, against one numpy broadcast over all triples."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np

from benchmarks.grid import grid
from benchmarks.table import judge, median_and_p95, reference_ms, show, times_s, written
from planner.model.network import Network
from planner.transfer.all_pairs import best_relays

MANY = 1000
REPEATS = 30
Figures = tuple[np.ndarray, np.ndarray, np.ndarray]


def by_broadcast(figures: Figures) -> np.ndarray:
    """Return the best relay's rate, with an n x n x n array."""
    pair, egress, ingress = figures
    capped = np.minimum(np.minimum(pair, egress[:, None]), ingress[None, :])
    np.fill_diagonal(capped, 0.0)
    through = np.minimum(capped[:, :, None], capped[None, :, :])
    best: np.ndarray = through.max(axis=1)
    np.fill_diagonal(best, 0.0)
    return best


def ours(figures: Figures) -> np.ndarray:
    """Return the best relay's rate."""
    return best_relays(*figures).rate_gbps


def random_figures(count: int) -> Figures:
    """Return rates of a grid of any size."""
    random = np.random.default_rng(count)
    pair = random.lognormal(1.6, 0.5, (count, count))
    return pair, pair.max(axis=1), pair.max(axis=0)


def peak_mb(run: object, figures: Figures) -> float:
    """Return the greatest memory that a call allocates, in MB."""
    assert callable(run)
    tracemalloc.start()
    run(figures)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def main() -> None:
    """Print the table."""
    january, name = grid()
    pair = january.matrix(january.pair_gbps, 0.0)
    figures = (pair, pair.max(axis=1), pair.max(axis=0))
    assert np.allclose(ours(figures), by_broadcast(figures))
    many = random_figures(MANY)
    rows = []
    for what, run, on, repeats, target in (
        (f"{len(pair)} regions", ours, figures, REPEATS, "1 ms"),
        (f"{len(pair)} regions, numpy broadcast", by_broadcast, figures, REPEATS, ""),
        (f"{MANY} regions", ours, many, 5, "0.8 s"),
    ):
        gc.collect()
        median, _ = median_and_p95(times_s(run, [on] * repeats))
        rows.append((what, written(median), f"{peak_mb(run, on):.1f} MB", target))
        if on is many:
            judge(f"all pairs of {MANY} regions, s", median / reference_ms(), 0.8)
    names, gbps = [f"own:{number}" for number in range(MANY)], many[0]
    made_s = min(times_s(lambda _: Network.from_matrices(names, gbps), range(3)))
    rows.append((f"{MANY} regions, as a network", written(made_s), "", "1.5 s"))
    judge(f"Network.from_matrices of {MANY} regions, s", made_s / reference_ms(), 1.5)
    cube_mb = MANY**3 * 8 / 1e6
    rows.append((f"{MANY} regions, numpy broadcast", "-", f"{cube_mb:.0f} MB", "(not run)"))
    show(f"Best relay for all pairs ({name})", ("", "median", "memory", "target"), rows)


if __name__ == "__main__":
    main()
