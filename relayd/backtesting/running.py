"""``relayd.backtest()``: replays the history of a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ParamSpec, Protocol

import numpy as np

from planner.model.aliases import resolve_many
from planner.model.catalogue import Catalogue
from planner.model.errors import DataError, InputError
from planner.model.network import Network
from planner.model.pricing import CataloguePrices
from probes.analysis.evidence import require
from probes.analysis.patterns import DAY_S
from relayd.backtesting.exploring import explored_history
from relayd.backtesting.history import ReplayHistory, Truths, metric_of
from relayd.backtesting.replay import DECISION, Scene, replay_all, transfer_terms
from relayd.backtesting.request import OF_TRANSFERS, BacktestRequest
from relayd.backtesting.result import (
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

FEWEST_REGIONS = 3

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

    Raises
    ------
    InputError, StoreError
        If an option is wrong, or the store can't be read.
    DataError
        If there is too little to conclude from.
    """
    return replayed(BacktestRequest(**asked), db, dask, catalogues)


def replayed(
    request: BacktestRequest,
    db: str | Path | None,
    dask: str | None,
    catalogues: Sequence[str | Path],
) -> Backtest:
    """Replay history by a request; see :func:`backtest`."""
    settings = load_settings()
    catalogue = load_catalogue((*settings.catalogues, *(Path(name) for name in catalogues)))
    connections, step_s = request.connections, request.step_s
    metric = metric_of(connections)
    with open_history(parse_location(db) if db else settings.db or default_path()) as samples:
        history = ReplayHistory(samples, catalogue, metric)
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
    by_step = list(replay_all(history.steps(edges_s), scene, dask))
    rows, days = (
        np.concatenate([np.zeros(0, DECISION), *by_step]),
        (len(edges_s) - 1) * step_s / DAY_S,
    )
    total = summed_up(rows, days)
    require("decisions held against measurements of their step", total.judged, FEWEST_DECISIONS)
    count, explored = history.samples_read, None
    provider = np.array([region.partition(":")[0] for region in history.regions])
    src, dst = (provider[place] for place in divmod(rows["pair"], len(provider)))
    if request.explore:
        steps = map(scene.estimated, history.steps(edges_s))
        explored = explored_history(steps, scene, request.explore, step_s)
    return Backtest(
        since=utc_text(edges_s[0].item()),
        until=utc_text(edges_s[-1].item()),
        step_s=step_s,
        steps=sum(bool(step["decided"].any()) for step in by_step),
        samples=count,
        regions=len(history.regions),
        metric=metric,
        **{name: getattr(request, name) for name in OF_TRANSFERS},
        total=total,
        by_providers=tuple(
            ProviderPairResult(a, b, summed_up(rows[(src == a) & (dst == b)], days))
            for a, b in sorted({(a, b) for a, b in provider[np.argwhere(judged)].tolist()})
        ),
        explored=explored,
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
