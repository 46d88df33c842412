"""A plan's id is that of the whole answer: two that differ never share one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planner.model.calibration import calibrated
from planner.model.document import document_of, network_of
from planner.model.errors import RelaydError
from planner.model.link import Link
from planner.model.link_states import LinkState
from planner.model.network import Network, Snapshot
from planner.model.pricing import FlatPrices
from planner.model.verification import Verified, VerifiedPath
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from tests.planner.transfer.strategies import REGIONS, networks, patient, prices, requests

NOW_S = 1.8e9
ENDS = (REGIONS[0], REGIONS[-1])


def _verified(share: float) -> Callable[[Network], Network]:
    """Return what lays a run of a plan over a network that carried a share of what it should."""

    def change(network: Network) -> Network:
        paths = (VerifiedPath((ENDS[0], REGIONS[2], ENDS[1]), 64, 4 * share, NOW_S - 60),)
        at_s = NOW_S - 60
        shown = Verified(*ENDS, "relay", "x", 3.9, 4.0, 4.1, 4 * share, at_s, paths)
        return calibrated(network, shown, NOW_S)

    return change


def _state(**fields: Any) -> Callable[[Network], Network]:
    state = LinkState(*ENDS, "degraded", "2027-01-15T08:00:00Z", "slow", **fields)
    return lambda network: network.with_(link_states={ENDS: state})


def _each(change: Callable[[Link], Link]) -> Callable[[Network], Network]:
    return lambda network: network.with_(links=network.usual.with_links(map(change, network)))


def _wider(link: Link) -> Link:
    rate = link.aggregate_gbps
    return replace(link, aggregate_gbps=replace(rate, low=rate.low * 0.9))


CHANGES: tuple[Callable[[Network], Network], ...] = (
    lambda network: network,
    lambda network: network.with_(snapshot=Snapshot("t", "", "")),
    lambda network: network_of(document_of(network)),
    _each(_wider),
    _each(lambda link: replace(link, loss_pct=3.0)),
    _verified(1.0),
    _verified(0.5),
    _verified(0.499),
    _state(rate_share=0.5),
    _state(rate_share=0.9),
)
QUESTIONS: tuple[Callable[[TransferRequest], TransferRequest], ...] = (
    lambda request: request,
    lambda request: replace(request, volume_gb=request.volume_gb * 2),
    lambda request: replace(request, frontier=True),
    lambda request: replace(request, month_to_date_gb={"aws": 1.0}),
)


@patient
@given(
    networks(),
    requests(),
    prices(),
    st.tuples(st.sampled_from(CHANGES), st.sampled_from(CHANGES)),
    st.sampled_from(QUESTIONS),
)
def test_two_answers_share_an_id_if_and_only_if_they_are_the_same(
    network: Network,
    request: TransferRequest,
    fees: FlatPrices,
    changes: tuple[Callable[[Network], Network], Callable[[Network], Network]],
    other: Callable[[TransferRequest], TransferRequest],
) -> None:
    asked = ((request, changes[0](network)), (other(request), changes[1](network)))
    try:
        one, two = (
            recommend(question, known, fees, now_s=NOW_S).model_dump("json")
            for question, known in asked
        )
    except RelaydError:
        return
    ids = {plan.pop("plan_id") for plan in (one, two)}
    # Sentences round what the last run carried; the id does not.
    ends = (request.src, request.dst)
    ran = [known.verified.get(ends) for _, known in asked]
    assert (len(ids) == 1) == (one == two and ran[0] == ran[1])
