"""Answers of worker processes, as JSON; none of it loads the web server."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from planner.fields.demands import pair_rows
from planner.fields.shared import DEFAULT_TIME_VALUE_USD_PER_H
from planner.fields.specified import Specified
from planner.model.errors import DataError, InfeasibleError, RelaydError
from planner.model.link_array import KINDS
from planner.model.network import Snapshot
from planner.model.units import S_PER_H
from planner.replanning.plan import Replan
from planner.replanning.request import ReplanRequest
from planner.transfer.request import TransferRequest
from relayd.catalogue.loading import load_catalogue
from relayd.demands import read_demands
from relayd.emitting.formats import emit
from relayd.http.problems import encoded as problem_bytes
from relayd.http.problems import problem_of
from relayd.questions.caveats import old_prices
from relayd.questions.decisions import Columns, decisions_on
from relayd.questions.holds import NONE_HELD, Holds
from relayd.snapshots.changes import effects_of
from relayd.sources.stored import StoredWan
from relayd.sources.wan import Wan
from relayd.store import Location, Store, open_store
from relayd.store.samples.decisions import selected, to_decide
from relayd.tables.figures import evidence_of, pairs_by_price, pairs_that_are, relay_worth

MOST_EFFECTS = 100
VOLUME_GB = 1000.0
"""That relays are compared for."""
MOST_S = 3.0
"""After which no further pair is planned; some 40 ms a pair."""


def encoded(value: Any) -> bytes:
    """Return dicts, lists, arrays, dataclasses and named tuples as JSON; NaN becomes null."""
    return orjson.dumps(value, _fields_of, orjson.OPT_SERIALIZE_NUMPY)


def _fields_of(value: Any) -> dict[str, Any]:
    """Return a named tuple's fields: orjson leaves open whether it is a list or an object."""
    if not isinstance(value, tuple):
        raise TypeError(f"{type(value).__name__} is not JSON")
    return value._asdict()  # type: ignore[attr-defined, no-any-return]


def open_stored(db: Location, catalogues: Sequence[Path], fleet: Path | None) -> Wan:
    """Open a store, with a fleet's VMs at their sites."""
    return StoredWan(load_catalogue(catalogues), db, fleet)


def answer_bytes(wan: Wan, request: Specified, holds: Holds = NONE_HELD) -> bytes:
    """Return an answer as JSON, on what transfers under way leave.

    Raises what :meth:`relayd.sources.wan.Wan.ask` raises.
    """
    return encoded(wan.holding(holds).ask(request))


def answer_earlier(
    _wan: Wan, open_stored: Callable[[], Wan], request: Specified
) -> tuple[Snapshot, bytes]:
    """Return an answer from an earlier snapshot, read from the store, as JSON; and the snapshot."""
    with closing(open_stored()) as wan:
        answer = wan.ask(request)
    return answer.snapshot, encoded(answer)


def script_of(_wan: Wan, asked: Mapping[str, Any]) -> str:
    """Write a plan as a script, by :func:`relayd.emitting.formats.emit`; it needs no network."""
    return emit(asked["plan"], asked["emit"], endpoints=asked["endpoints"], port=asked["port"])


def demands_of(wan: Wan, asked: dict[str, Any]) -> dict[str, Any]:
    """Return the demands that a file's text has, as a question takes them, and their notes."""
    found = read_demands(**asked, catalogue=wan.catalogue)
    return {"demands": pair_rows(found), "notes": found.notes}


def batch_items(wan: Wan, requests: list[Any], request_id: str | None, holds: Holds) -> list[bytes]:
    """Return the items of a batch's answer, each with a plan or its own problem."""
    items = []
    for request in requests:
        plan, problem = b"null", b"null"
        try:
            plan = answer_bytes(wan, TransferRequest.from_json(request), holds)
        except RelaydError as error:
            problem = problem_bytes(problem_of(error), request_id)
        items.append(b'{"plan":%b,"problem":%b}' % (plan, problem))
    return items


def decisions(
    wan: Wan, columns: Columns, first: int, holds: Holds, *, splits: bool, as_json: bool
) -> Any:
    """Return decisions as an array, or as JSON: the insides of a list for each of its columns."""
    found = decisions_on(wan.holding(holds), columns, splits=splits, first=first)
    if not as_json:
        return found
    return [encoded(found[name].tolist())[1:-1] for name in found.dtype.names or ()]


def advice_on(wan: Wan, plans: Sequence[Mapping[str, Any]], holds: Holds) -> list[Replan | None]:
    """Return the advice on each plan in progress.

    None for a plan that can't be re-planned, or that came too late: it takes some 100 ms a plan.
    """
    wan, until_s = wan.holding(holds), time.monotonic() + MOST_S
    found: list[Replan | None] = []
    for plan in plans:
        advice = None
        if time.monotonic() < until_s:
            with suppress(RelaydError):
                advice = wan.ask(ReplanRequest.from_json(plan))
        found.append(advice)
    return found


def matrix_bytes(
    wan: Wan, metric: Any, connections: int, measured_only: bool, digits: int | None
) -> bytes:
    """Return a matrix as JSON."""
    matrix = wan.matrix(metric, connections, measured_only=measured_only)
    values: Any = matrix.values
    if digits:
        # By way of text: a power of ten times a whole number would show a binary fraction's end.
        values = [[float(f"{value:.{digits}g}") for value in row] for row in values.tolist()]
    return encoded(replace(matrix, values=values))


def pairs_bytes(wan: Wan, kind: Any) -> bytes:
    """Return pairs of regions that deserve a look, as JSON."""
    found = pairs_that_are(
        kind, wan.network, wan.catalogue, VOLUME_GB, DEFAULT_TIME_VALUE_USD_PER_H
    )
    targets = [np.flatnonzero(row) for row in found]
    return encoded(
        {"snapshot": wan.snapshot, "regions": tuple(wan.network.sites), "targets": targets}
    )


def knowledge_bytes(wan: Wan) -> bytes:
    """Return sources and ages of all links, and old prices, as JSON."""
    now_s = time.time()
    pairs = pairs_by_price(wan.network, wan.catalogue)
    prices = [*old_prices(wan.catalogue, pairs, now_s)]
    return encoded({**evidence_of(wan.network, now_s), "old_prices": prices})


def relay_gains_bytes(wan: Wan, limit: int, usd_per_h: float, vms: int) -> bytes:
    """Return at most so many pairs on which the planner relays at these settings, as JSON.

    `usd_per_h` is what an hour is worth: infinity where time alone counts. A region may have `vms`.
    """
    until_s = time.monotonic() + MOST_S
    worth = relay_worth(wan.network, wan.catalogue, VOLUME_GB, usd_per_h)
    worth = np.nan_to_num(worth, posinf=0.0)
    regions, promising, asked = tuple(wan.network.sites), int((worth > 1).sum()), 0
    found: list[dict[str, Any]] = []
    for at in np.argsort(-worth, axis=None, kind="stable")[:promising]:
        if time.monotonic() > until_s:
            break
        i, j = divmod(int(at), len(regions))
        entry, asked = _relay_gain(wan, regions[i], regions[j], usd_per_h, vms), asked + 1
        found += [entry] if entry else []
    found.sort(key=lambda entry: -entry["gain"])
    about = {"time_value_usd_per_h": usd_per_h, "vms": vms, "volume_gb": VOLUME_GB}
    about |= {"promising": promising, "asked": asked, "pairs": len(found)}
    return encoded({"snapshot": wan.snapshot, **about, "relays": found[:limit]})


def _relay_gain(wan: Wan, src: str, dst: str, usd_per_h: float, vms: int) -> dict[str, Any] | None:
    by: Any = {"objective": "time"} if usd_per_h == inf else {"time_value_usd_per_h": usd_per_h}
    request = TransferRequest(
        src, dst, volume_gb=VOLUME_GB, relays="one", vms=vms, candidates=1, **by
    )
    try:
        plan = wan.ask(request)
    except (DataError, InfeasibleError):  # such as a quota that leaves an end no VM
        return None
    direct, usual_gbps = plan.direct, plan.direct.throughput_gbps
    if plan.verdict == "direct" or direct.duration_s is None or direct.cost_usd is None:
        return None  # without a direct path, that is no gain, but an outage
    saved_h = (direct.duration_s - plan.duration_s) / S_PER_H
    paid_usd = plan.cost_usd.total - direct.cost_usd.total
    hops = {(src, dst), *(hop for path in plan.paths for hop in pairwise(path.regions))}
    sources = [wan.network.link(*hop).aggregate_gbps.source for hop in hops]
    return {
        "src": src,
        "dst": dst,
        "relay": next(path.regions[1] for path in plan.paths if len(path.regions) > 2),
        "verdict": plan.verdict,
        "gain": plan.throughput_gbps / usual_gbps,
        "gain_low": plan.throughput_gbps_low / usual_gbps,
        "gain_high": plan.throughput_gbps_high / usual_gbps,
        "source": max(sources, key=KINDS.index),
        "direct_s": direct.duration_s,
        "relay_s": plan.duration_s,
        "direct_usd": direct.cost_usd.total,
        "relay_usd": plan.cost_usd.total,
        "pays_from_usd_per_h": max(0.0, paid_usd) / saved_h if saved_h > 0 else 0.0,
    }


def samples_meant(_wan: Wan, location: Location, request: dict[str, Any]) -> dict[str, Any]:
    """Return about how many samples a decision is, and the last there is; in a worker."""
    through = request["through"]
    with open_store(location, mode="read") as store:
        through = store.samples.last_id() if through is None else through
        found = _meant(store, {**request, "through": through})
    return {"samples": len(found), "through": through}


def decision_effects(wan: Wan, location: Location, request: dict[str, Any]) -> dict[str, Any]:
    """Return the effects of a decision as JSON types; in a process, as it takes a while."""
    decision = request["decision"]
    with open_store(location, mode="read") as store:
        meant = _meant(store, request)
        what: dict[str, Any] = {"accepted": meant}
        if decision != "accept":
            what = {"change": (decision, frozenset(meant))}
        changed = effects_of(store, wan.catalogue, **what)
    return {"total": len(changed), "changed": changed[:MOST_EFFECTS]}


def _meant(store: Store, request: dict[str, Any]) -> list[Any]:
    """Return the samples in quarantine that a decision is about, or the ids of others.

    Raises an InputError if it can't be made.
    """
    database, decision = store.database, request["decision"]
    if decision in ("accept", "reject"):
        return to_decide(database, request["quarantined"], accepting=decision == "accept")
    return selected(database, decision, request["selection"], through=request["through"])
