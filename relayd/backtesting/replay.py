"""``relayd.backtest()``: decides every pair at each step of a history, and judges the decisions.

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
from pathlib import Path
from typing import Any, ParamSpec, Protocol

import numpy as np

from planner.model.aliases import resolve_many
from planner.model.catalogue import Catalogue
from planner.model.errors import DataError, InputError, not_installed
from planner.model.network import Network
from planner.model.pricing import CataloguePrices, Prices
from planner.model.units import BITS_PER_BYTE, S_PER_H
from planner.transfer.all_pairs import (
    DIRECT,
    Terms,
    best_relays_by_value,
    choose,
    outcomes,
    path_rates,
)
from planner.transfer.allocation import EQUAL
from planner.transfer.request import TransferRequest
from probes.analysis.evidence import require
from probes.analysis.patterns import DAY_S
from probes.metrics import throughput_of
from probes.samples import Rows
from relayd.backtesting.history import ReplayHistory, StepEstimator, StepSamples, Truths
from relayd.backtesting.request import OF_TRANSFERS, BacktestRequest
from relayd.backtesting.result import (
    DECISION,
    FEWEST_DECISIONS,
    Backtest,
    PairsResult,
    ProviderPairResult,
    summed_up,
)
from relayd.catalogue.loading import load_catalogue
from relayd.history import open_history
from relayd.settings import load_settings
from relayd.store import default_path, parse_location
from relayd.times import utc_text
from relayd.version import __version__

FEWEST_REGIONS = 3
CONNECT_S = 10.0
STEPS_A_WORKER = 2
"""Steps on the cluster at once: more would only fill memory."""

P = ParamSpec("P")


class _Signature(Protocol[P]):
    """The parameters of :func:`backtest`: those that it names, and the fields of a request."""

    def __call__(
        self,
        db: str | Path | None = None,
        dask: str | None = None,
        catalogues: Sequence[str | Path] = (),
        *values: P.args,
        **asked: P.kwargs,
    ) -> Backtest: ...


def _asking(_: Callable[P, BacktestRequest]) -> Callable[[Any], _Signature[P]]:
    return lambda function: function


@_asking(BacktestRequest)
def backtest(
    db: str | Path | None = None,
    dask: str | None = None,
    catalogues: Sequence[str | Path] = (),
    **asked: Any,
) -> Backtest:
    """Replay stored history: the plans that relayd would have recommended, and their results.

    Raises InputError or StoreError if an option is wrong, or the store can't be read; DataError if
    there is too little to conclude from.

    Parameters
    ----------
    db : str or Path, optional
        A store, as :func:`relayd.open` takes it, or a folder of Parquet files.
    dask : str, optional
        Address of the scheduler of a Dask cluster to compute on; the answer is the same.
    catalogues : sequence of str or Path
        Catalogue files of one's own.
    **asked
        Fields of :class:`relayd.backtesting.request.BacktestRequest`.
    """
    return replayed(BacktestRequest(**asked), db, dask, catalogues)


def replayed(
    request: BacktestRequest,
    db: str | Path | None,
    dask: str | None,
    catalogues: Sequence[str | Path],
) -> Backtest:
    """Replay history by a request; see :func:`backtest`, which raises the same errors."""
    settings = load_settings()
    catalogue = load_catalogue((*settings.catalogues, *(Path(name) for name in catalogues)))
    connections, step_s = request.connections, request.step_s
    metric = throughput_of(connections)
    with open_history(parse_location(db) if db else settings.db or default_path()) as samples:
        history = ReplayHistory(samples.read(), catalogue, metric)
    require(f"regions with {metric} samples", len(history.regions), FEWEST_REGIONS)
    if connections > 1 and (most := history.most_connections) > connections:
        problem = f"is fewer than the {most} that samples were taken with"
        remedy = f"Replay with {most} or more, or with 1, which rests on single flows."
        raise InputError("connections", problem, value=connections, remedy=remedy)
    edges_s = history.edges_s(step_s, request.since_s, request.until_s)
    judged = _judged(history, catalogue, request.pairs)
    network = Network(dict(history.sites), {region: {} for region in history.regions})
    prices = CataloguePrices(catalogue, network)
    terms = transfer_terms(request.transfer(), history.regions, prices)
    scene = Scene(terms, history.estimator(connections), judged)
    if not (judged & np.isfinite(terms.egress_usd)).any():
        raise DataError(
            "The catalogue has no egress price for any of these pairs, so nothing can be "
            "recommended for them. Add prices to a catalogue file."
        )
    steps = list(replay_all(history.steps(edges_s), scene, dask))
    rows = np.concatenate([np.zeros(0, DECISION), *steps])
    days, samples_read = (len(edges_s) - 1) * step_s / DAY_S, history.samples_read
    total = summed_up(rows, days)
    require("decisions held against measurements of their step", total.judged, FEWEST_DECISIONS)
    provider = np.array([region.partition(":")[0] for region in history.regions])
    src, dst = (provider[place] for place in divmod(rows["pair"], len(provider)))
    return Backtest(
        since=utc_text(edges_s[0].item()),
        until=utc_text(edges_s[-1].item()),
        step_s=step_s,
        steps=sum(bool(step["decided"].any()) for step in steps),
        samples=samples_read,
        regions=len(history.regions),
        metric=metric,
        **{name: getattr(request, name) for name in OF_TRANSFERS},
        total=total,
        by_providers=tuple(
            ProviderPairResult(a, b, summed_up(rows[(src == a) & (dst == b)], days))
            for a, b in sorted({(a, b) for a, b in provider[np.argwhere(judged)].tolist()})
        ),
        warnings=tuple(_warnings(history, scene, total)),
    )


def _judged(history: ReplayHistory, catalogue: Catalogue, pairs: Sequence[str]) -> Truths:
    """Return the pairs to decide."""
    measured = history.measured & ~np.eye(len(history.regions), dtype=bool)
    if not pairs:
        return measured
    asked, regions = np.zeros_like(measured), history.regions
    for text in pairs:
        rules = [rule.strip() for rule in text.split(">", 1)]
        if len(rules) < 2:
            remedy = "Write SRC>DST, such as 'azure>aws'."
            raise InputError("pairs", "has no `>`", value=text, remedy=remedy)
        src, dst = (
            np.isin(
                regions,
                list(regions)
                if rule in {"", "*"}
                else list(resolve_many([rule], catalogue, field="pairs", known=regions)),
            )
            for rule in rules
        )
        asked |= src[:, None] & dst
    if not (asked & measured).any():
        raise DataError("No pair that was asked for has throughput samples.")
    return measured & asked


def _warnings(history: ReplayHistory, scene: Scene, total: PairsResult) -> list[str]:
    warnings = []
    unpriced: Truths = scene.judged & ~np.isfinite(scene.terms.egress_usd)
    if unpriced.any():
        warnings.append(
            f"{int(unpriced.sum())} pairs are left out: the catalogue has no egress price for them"
        )
    if total.judged < 0.9 * total.decisions:
        warnings.append(
            f"only {total.judged / total.decisions:.0%} of the decisions could be judged: the "
            "others' paths were not measured in the same step"
        )
    measured = int(history.measured.sum())
    links = len(history.regions) * (len(history.regions) - 1)
    if measured < links:
        warnings.append(
            f"{measured:,} of {links:,} links were measured; the others were not open to any "
            "strategy"
        )
    return warnings


# ---- steps ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scene:
    """The parts of a replay that are the same at every step.

    `judged` marks the pairs to decide, shape (n, n).
    """

    terms: Terms
    estimated: StepEstimator
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

    Raises InputError if the cluster can't be used.
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
