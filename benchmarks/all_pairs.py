"""The best single relay for all pairs at once, against one numpy broadcast over all triples."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from statistics import median

import numpy as np

from benchmarks.table import judge, reference_ms, show, times_s, written
from planner.model.network import Network
from planner.transfer.all_pairs import best_relays
from tests.planner.grid import january_grid

MANY = 1000
Figures = tuple[np.ndarray, np.ndarray, np.ndarray]


def by_broadcast(figures: Figures) -> np.ndarray:
    """Return the best relay's rate, with an n x n x n array."""
    pair, egress, ingress = figures
    capped = np.minimum(np.minimum(pair, egress[:, None]), ingress[None, :])
    np.fill_diagonal(capped, 0.0)
    best: np.ndarray = np.minimum(capped[:, :, None], capped[None, :, :]).max(axis=1)
    np.fill_diagonal(best, 0.0)
    return best


def ours(figures: Figures) -> np.ndarray:
    """Return the best relay's rate."""
    return best_relays(*figures).rate_gbps


def figures_of(pair: np.ndarray) -> Figures:
    """Return rates of pairs, and those of their ends."""
    return pair, pair.max(axis=1), pair.max(axis=0)


def peak_mb(run: Callable[[Figures], object], figures: Figures) -> float:
    """Return the greatest memory that a call allocates, in MB."""
    tracemalloc.start()
    run(figures)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def main() -> None:
    """Print the table."""
    january = january_grid()
    known = figures_of(january.matrix(january.pair_gbps, 0.0))
    many = figures_of(np.random.default_rng(MANY).lognormal(1.6, 0.5, (MANY, MANY)))
    assert np.allclose(ours(known), by_broadcast(known))
    rows = []
    for what, run, on, repeats in (
        ("63 regions", ours, known, 30),
        ("63 regions, numpy broadcast", by_broadcast, known, 30),
        (f"{MANY} regions", ours, many, 5),
    ):
        gc.collect()
        took_s = median(times_s(run, [on] * repeats))
        rows.append((what, written(took_s), f"{peak_mb(run, on):.1f} MB"))
    judge(f"all pairs of {MANY} regions, s", took_s / reference_ms(), 0.8)
    names = [f"own:{number}" for number in range(MANY)]
    made_s = min(times_s(lambda _: Network.from_matrices(names, many[0]), range(3)))
    rows.append((f"{MANY} regions, as a network", written(made_s), ""))
    judge(f"Network.from_matrices of {MANY} regions, s", made_s / reference_ms(), 1.5)
    show("Best relay for all pairs (January 2022)", ("", "median", "memory"), rows)


if __name__ == "__main__":
    main()
