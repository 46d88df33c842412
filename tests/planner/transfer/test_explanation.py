"""Reasons are true: their figures are the plan's, and what they claim follows from it."""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf

import numpy as np
from hypothesis import assume, example, given
from hypothesis import strategies as st

from planner.model.errors import DataError, InfeasibleError
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.model.units import gbps_text, rate_text
from planner.transfer.plan import Plan
from planner.transfer.problem import transfer_problem
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from tests.planner.transfer.strategies import REGIONS, networks, patient, prices, requests


def planned(request: TransferRequest, network: Network, price_list: FlatPrices) -> Plan:
    try:
        return recommend(request, network, price_list, now_s=1e9)
    except (InfeasibleError, DataError):
        assume(False)
        raise


def relays_alone(
    request: TransferRequest, network: Network, price_list: FlatPrices
) -> tuple[dict[str, float], dict[str, float]]:
    """Return what each relay alone carries at most, and what it then costs, by relay."""
    rates, costs_usd = {}, {}
    for region in REGIONS[1:-1] if request.relays in {"any", "one"} else [request.relays]:
        alone = replace(request, objective="time", budget_usd=None, relays=region)
        try:
            best = recommend(alone, network, price_list).best_relay
        except (InfeasibleError, DataError):
            continue
        if best:
            rates[region], costs_usd[region] = best.throughput_gbps, best.cost_usd.total
    return rates, costs_usd


def gains(request: TransferRequest, network: Network, price_list: FlatPrices) -> list[float]:
    """Return how often each relay carries what the direct path does, with all VMs of both."""
    free = replace(request, budget_usd=None, deadline_s=None, min_throughput_gbps=None)
    rates, _ = relays_alone(free, network, price_list)
    alone = replace(free, objective="time", relays="none")
    direct_gbps = recommend(alone, network, price_list).throughput_gbps
    return [rate / direct_gbps for rate in rates.values()]


def links_of(plan: Plan) -> set[tuple[str, str]]:
    return {
        pair for path in plan.paths for pair in zip(path.regions, path.regions[1:], strict=False)
    }


def is_said(text: str, value: float, digits: int) -> bool:
    """Whether a printed figure is a value's, but for its last digit."""
    return bool(abs(float(text) - value) <= 0.51 * 10**-digits)


def margins(request: TransferRequest, plan: Plan) -> tuple[float, float]:
    """Return the least and the greatest margin that a relay must beat: fees are certain, and free.

    It may have been compared with a direct plan of more VMs, which is better by up to 5 % of all
    but fees.
    """
    direct = plan.direct
    if request.hour_usd == inf or direct.cost_usd is None or direct.duration_s is None:
        return request.margin, request.margin
    fees_usd = direct.cost_usd.egress
    beyond_usd = direct.cost_usd.vm + request.hour_usd * direct.duration_s / 3600
    if fees_usd + beyond_usd <= 0:
        return request.margin, request.margin
    least, most = (usd / (usd + fees_usd or 1.0) for usd in (beyond_usd / 1.05, beyond_usd))
    return request.margin * least, request.margin * most


FEES_OF_RELAYS = np.full((len(REGIONS), len(REGIONS)), 0.02)
FEES_OF_RELAYS[0, -1] = 0.05
"""Direct costs 1.25 times what relays do, and nothing but fees: no margin is left to beat."""

KNOWN = np.full((len(REGIONS), len(REGIONS)), np.nan)
KNOWN[[0, 0, 1], [1, -1, -1]] = [100.0, 50.0, 100.0]
TWICE_AS_FAST = Network.from_matrices(REGIONS, KNOWN / KNOWN * 0.5, per_flow_mbps=KNOWN)
"""One connection of either link of a relay carries twice what one direct connection does."""


@patient
@given(requests(), networks(), prices())
@example(
    TransferRequest(
        REGIONS[0],
        REGIONS[-1],
        volume_gb=1.0,
        time_value_usd_per_h=0.0,
        margin=0.0,
        budget_usd=0.25,
        connections=1,
        vm_start_s=0.0,
    ),
    TWICE_AS_FAST,
    FlatPrices(REGIONS, np.nan_to_num(KNOWN) * (KNOWN == 100) * 0.0014),
)
@example(
    TransferRequest(REGIONS[0], REGIONS[-1], volume_gb=1.0, time_value_usd_per_h=0.0, margin=0.5),
    Network.from_matrices(REGIONS, np.full((len(REGIONS), len(REGIONS)), 5.0)),
    FlatPrices(REGIONS, FEES_OF_RELAYS),
)
def test_a_reason_says_what_follows_from_the_figures(
    request: TransferRequest, network: Network, price_list: FlatPrices
) -> None:
    plan = planned(request, network, price_list)
    reason, best = plan.reason, plan.best_relay
    direct_gbps = plan.direct.throughput_gbps
    relays = {region for path in plan.paths for region in path.regions[1:-1]}
    limits = (request.budget_usd, request.deadline_s, request.min_throughput_gbps)

    named = {region for region in REGIONS[1:-1] if region in reason}
    assert named <= relays | {one.relay for one in plan.alternatives} | (
        {best.relay} if best else set()
    ) | ({region for region in REGIONS if best is None or re.search("better|fastest", reason)})
    if relays:
        assert relays <= named

    assert ("Only the direct path was asked for" in reason) == (
        request.relays == "none" and plan.verdict == "direct"
    )
    problem = transfer_problem(request, network, price_list)
    if "No relay path is known or permitted" in reason:
        assert not problem.relays
    if match := re.search(r"The fastest relay, (\S+), carries (\S+)x but costs (\S+) USD", reason):
        assert request.budget_usd
        rates, costs_usd = relays_alone(request, network, price_list)
        assert direct_gbps
        assert rates[match[1]] > direct_gbps
        assert rates[match[1]] >= max(rates.values()) * (1 - 1e-9)
        assert costs_usd[match[1]] > request.budget_usd
        alike, _ = relays_alone(
            replace(request, vms=max(plan.direct.vms.values())), network, price_list
        )
        assert is_said(match[2], alike[match[1]] / direct_gbps, 2)
    if "No relay can meet" in reason:
        assert best is None
        assert problem.relays
        assert any(limits)
    if match := re.search(
        r"No relay is (much )?faster: the best, (\S+), carries (\S+)x and costs", reason
    ):
        assert direct_gbps
        most = 1.05 if match[1] else 1.0
        assert float(match[3]) <= most + 0.0051
        assert all(gain <= most * (1 + 1e-9) for gain in gains(request, network, price_list))
    if match := re.search(r"The best relay, (\S+), carries ([\d.]+)x but costs ([\d.]+)x", reason):
        assert best
        assert best.relay == match[1]
        assert direct_gbps
        assert plan.direct.cost_usd
        assert is_said(match[2], best.throughput_gbps / direct_gbps, 2)
        if plan.direct.cost_usd.total > 1e-9:
            ratio = best.cost_usd.total / plan.direct.cost_usd.total
            assert abs(float(match[3]) / ratio - 1) < 0.5 or is_said(match[3], ratio, 1)
        assert request.hour_usd < inf
    if match := re.search(r"carries (\S+) Gbit/s where direct carries (\S+?)( |,)", reason):
        assert plan.verdict != "direct"
        assert direct_gbps
        assert match[1] == gbps_text(plan.throughput_gbps)
        assert match[2] == gbps_text(direct_gbps)
    if "cannot meet" in reason:
        assert not plan.direct.feasible
        assert any(limits)
    if "Nothing is known of the direct path" in reason:
        assert plan.direct.throughput_gbps is None
    if match := re.search(r"(is only|may be) ([\d.]+)x better in .*, (which does not|but)", reason):
        assert plan.verdict == "direct"
        assert match[3] == ("but" if match[1] == "may be" else "which does not")
        least, most = margins(request, plan)
        if match[1] == "may be":
            assert float(match[2]) >= 1 + least - 0.0051
        else:
            assert float(match[2]) <= 1 + most + 0.0051
    if plan.verdict != "direct" and plan.direct.feasible and request.objective != "latency":
        stated = re.search(r"\(([\d.]+)x to (\S+)x as (?:fast|good)", reason)
        if stated is None:  # infinitely better
            assert plan.cost_usd.total == 0
        else:
            assert float(stated[2]) >= 1 + margins(request, plan)[0] - 0.0051


@patient
@given(requests(), networks(), prices())
def test_confidence_counts_every_link_in_use(
    request: TransferRequest, network: Network, price_list: FlatPrices
) -> None:
    plan = planned(request, network, price_list)
    counts = {
        kind: int(number)
        for number, kind in re.findall(
            r"(\d+) (measured|inferred|baseline) links?", plan.confidence
        )
    }
    assert sum(counts.values()) == len(links_of(plan))
    assert rate_text(plan.throughput_gbps_low, plan.throughput_gbps_high) in plan.confidence
    assert ("baseline figures come from models" in plan.confidence) == ("baseline" in counts)


@patient
@given(requests(), networks(), prices(), st.data())
def test_loss_is_said_of_links_in_use_and_of_no_other(
    request: TransferRequest, network: Network, price_list: FlatPrices, data: st.DataObject
) -> None:
    losses = {
        (src, dst): data.draw(st.sampled_from([None, 0.0, 0.5, 1.0, 3.0]))
        for src, there in network.links.items()
        for dst in there
    }
    lossy = network.with_(
        links={
            src: {dst: replace(link, loss_pct=losses[src, dst]) for dst, link in there.items()}
            for src, there in network.links.items()
        }
    )
    plan = planned(request, lossy, price_list)
    said = {
        (match[1], match[2])
        for warning in plan.warnings
        if (match := re.match(r"(\S+) -> (\S+) loses", warning))
    }
    assert said == {pair for pair in links_of(plan) if (losses[pair] or 0.0) >= 1.0}
