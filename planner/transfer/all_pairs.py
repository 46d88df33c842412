"""The best single relay for every pair of regions at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class BestRelays(NamedTuple):
    """Shapes (n, n), row to column.

    Attributes
    ----------
    relay : array of int32
        Position of the relay of greatest rate; -1 where no relay path exists.
    rate_gbps : array of float32
        What one VM at each of the three sites carries through it; 0 where there is none.
    """

    relay: NDArray[np.int32]
    rate_gbps: NDArray[np.float32]


def best_relays(
    pair_gbps: NDArray[np.floating],
    egress_gbps: NDArray[np.floating],
    ingress_gbps: NDArray[np.floating],
) -> BestRelays:
    """Find the one-hop relay of greatest rate for all pairs.

    ``min(E_s, A_sr, I_r, E_r, A_rd, I_d)`` is maximised over r by looping over sources: each
    takes one pass over an n x n array in float32. The n x n x n array is never built, so memory
    stays at a few n x n arrays.

    Parameters
    ----------
    pair_gbps : array, shape (n, n)
        Rate of one VM pair; 0 or less where there is no link. The diagonal is ignored.
    egress_gbps, ingress_gbps : arrays, shape (n,)
        Caps of one VM.
    """
    count = len(pair_gbps)
    first = np.array(pair_gbps, dtype=np.float32)
    np.fill_diagonal(first, 0.0)
    # Row d of the second link holds the rates from every r into d, capped at both its ends.
    second = np.ascontiguousarray(first.T)
    np.minimum(second, np.asarray(egress_gbps, np.float32)[None, :], out=second)
    np.minimum(second, np.asarray(ingress_gbps, np.float32)[:, None], out=second)
    np.minimum(first, np.asarray(egress_gbps, np.float32)[:, None], out=first)
    np.minimum(first, np.asarray(ingress_gbps, np.float32)[None, :], out=first)
    relay = np.empty((count, count), np.int32)
    rate = np.empty((count, count), np.float32)
    through = np.empty((count, count), np.float32)
    rows = np.arange(count)
    for src in range(count):
        np.minimum(second, first[src], out=through)
        best = through.argmax(axis=1)
        relay[src] = best
        rate[src] = through[rows, best]
    np.fill_diagonal(rate, 0.0)
    relay[rate <= 0] = -1
    return BestRelays(relay, rate)
