"""Decides every pair at each step of a history, and judges decisions by the step's measurements.

Relayd's rule decides for every pair on the samples from before the step
(:mod:`planner.transfer.all_pairs`); the measurements during the step are the truth by which the
decision is judged, as are three others: always direct, always the relay that looked best, and
hindsight, which knows the truth. Hindsight picks the best of many single measurements, noise
included, so that a decision made before can't quite reach it.

Steps are replayed one by one and put together in the order of time: wherever they are computed, the
digits are the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from planner.model.errors import DataError, InputError, not_installed
from planner.model.pricing import Prices
from planner.model.units import BITS_PER_BYTE, S_PER_H
from planner.transfer.all_pairs import (
    DIRECT,
    Outcomes,
    Terms,
    best_relays_by_value,
    choose,
    outcomes,
    path_rates,
)
from planner.transfer.allocation import EQUAL
from planner.transfer.request import TransferRequest
from probes.samples import Rows
from relayd.backtesting.history import Step, StepSamples, Truths
from relayd.version import __version__

STRATEGIES = ("relayd", "direct", "relay", "hindsight")
DECISION = np.dtype(
    [
        ("pair", "i4"),  # n times the source, and the destination
        ("covered", "?"),  # by the bounds of the direct link
        ("decided", "?"),
        ("scored", "?"),  # all paths were measured in the step
        ("verdict_right", "?"),
        *((name, "f8", len(STRATEGIES)) for name in Outcomes._fields),
        ("choice", "i4", len(STRATEGIES)),
    ]
)
"""A pair in a step in which it was measured, having been measured before."""
CONNECT_S = 10.0
STEPS_A_WORKER = 2
"""Steps on the cluster at once: more would only fill memory."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The parts of a replay that are the same at every step.

    `judged` marks the pairs to decide, shape (n, n).
    """

    terms: Terms
    estimated: Callable[[StepSamples], Step]
    judged: Truths


def transfer_terms(request: TransferRequest, regions: Sequence[str], prices: Prices) -> Terms:
    """Return the costs of a transfer between each pair of regions.

    The request says everything of them but their ends.
    """

    def fee(src: str, dst: str) -> float:
        try:
            return request.volume_gb * prices.egress_usd_per_gb(src, dst, request.volume_gb)
        except DataError:
            return inf

    return Terms(
        BITS_PER_BYTE * request.volume_gb / S_PER_H,
        np.array([[inf if src == dst else fee(src, dst) for dst in regions] for src in regions]),
        np.array([prices.vm_usd_per_h(region) for region in regions]),
        request.start_s / S_PER_H,
        request.hour_usd,
        request.margin,
        request.risk,
    )


def replay(samples: StepSamples, scene: Scene) -> Rows:
    """Decide every pair in a step and judge the decisions: rows of :data:`DECISION`."""
    step, terms = scene.estimated(samples), scene.terms
    chosen, likeliest = choose(terms, *step.factors, step.rtt_ms)
    known = ~np.isnan(step.truth_gbps)
    # A direct link that is down needs a relay: without one there is nothing to recommend.
    possible = (step.believed.expected > 0) | (likeliest != DIRECT)
    foreseen = scene.judged & step.estimated & known
    true_rates = np.nan_to_num(step.truth_gbps)
    np.fill_diagonal(true_rates, 0.0)
    relay, value = best_relays_by_value(terms, true_rates, step.true_rtt_ms)
    direct = np.full_like(relay, DIRECT)
    alone = outcomes(terms, true_rates, step.true_rtt_ms, direct)
    hindsight = np.where(value < alone.value * (1 - EQUAL), relay, DIRECT).astype(np.int32)
    choices = (chosen, direct, likeliest, hindsight)
    results = [outcomes(terms, true_rates, step.true_rtt_ms, path) for path in choices]

    told = np.where(known, 1.0, 0.0)
    paths_known = (path_rates(told, chosen) > 0) & (path_rates(told, likeliest) > 0)
    found = np.zeros(int(foreseen.sum()), DECISION)
    found["pair"] = np.flatnonzero(foreseen)
    found["covered"] = step.covered[foreseen]
    found["decided"] = (possible & np.isfinite(terms.egress_usd))[foreseen]
    found["scored"] = found["decided"] & (paths_known & (results[-1].rate_gbps > 0))[foreseen]
    relay_pays = (results[2].rate_gbps > 0) & (
        alone.value >= (1 + terms.margins(alone.value)) * results[2].value * (1 - EQUAL)
    )
    found["verdict_right"] = ((chosen != DIRECT) == relay_pays)[foreseen]
    for place, (choice, result) in enumerate(zip(choices, results, strict=True)):
        found["choice"][:, place] = choice[foreseen]
        for name, values in result._asdict().items():
            found[name][:, place] = values[foreseen]
    return found


def replay_all(
    steps: Iterable[StepSamples], scene: Scene, address: str | None = None
) -> Iterator[Rows]:
    """Replay steps, in this process or on a Dask cluster; yield the rows of each in their order.

    Steps come the oldest first; the address is that of the scheduler of a running cluster.

    Raises
    ------
    InputError
        If the cluster can't be used.
    """
    if not address:
        yield from (replay(step, scene) for step in steps)
        return
    try:
        from distributed import Client
    except ImportError:
        raise not_installed("distributed", "dask", "use a Dask cluster") from None
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        problem = f"no scheduler of a Dask cluster answers ({str(error)[:200]})"
        remedy = "Give its address, such as tcp://10.0.0.1:8786."
        raise InputError("--dask", problem, value=address, remedy=remedy) from None
    with client:
        workers = _same_everywhere(client, address)
        told = client.scatter(scene, broadcast=True)
        waiting: deque[Any] = deque()
        for step in steps:
            # As data of its own: in the task it would be copied, with a warning.
            there = client.scatter(step, hash=False)
            waiting.append(client.submit(replay, there, told, pure=False))
            if len(waiting) >= STEPS_A_WORKER * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _same_everywhere(client: Any, address: str) -> int:
    """Return the number of workers, all of which must have this version of relayd."""
    try:
        versions: dict[str, str] = client.run(version_here)
    except (ImportError, AttributeError) as error:
        versions = {address: f"missing ({error})"}
    others = [f"{version} at {at}" for at, version in versions.items() if version != __version__]
    if others or not versions:
        problem = f"relayd here is {__version__} and {others[0]}" if others else "has no workers"
        remedy = f"Start workers that have relayd {__version__}."
        raise InputError("--dask", problem, value=address, remedy=remedy)
    return len(versions)


def version_here() -> str:
    """Return the version of relayd in the process that runs this."""
    return __version__
