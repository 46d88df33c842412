"""A schedule's linear program against the whole one over all slots and paths, by SciPy's HiGHS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, hstack, vstack

from planner.model.shared_resources import Floats
from planner.schedule.program import Commodity, Disk
from planner.schedule.request import Tariff
from planner.schedule.solver import WHOLE, ScheduleProgram
from planner.schedule.tariffs import MONTH_S, LinkTariffs
from tests.planner.schedule.schedules import Full, world
from tests.planner.schedule.schedules import transfers as random_transfers


def both(
    seed: int,
    fill: float,
    transfers: int = 4,
    tariffs: Sequence[Tariff] = (),
    disks: Mapping[int, tuple[float, float]] = {},
) -> tuple[ScheduleProgram, Full]:
    """Return the same instance as the program under test and as the whole one."""
    of = world(seed)
    asked = random_transfers(of, seed, transfers, fill)
    link_tariffs = LinkTariffs(tariffs, of.names, of.fees / 8)
    last_s = max(t.deadline_s or 0.0 for t in asked)
    first_s = min(t.start_s for t in asked)
    full = Full(of, asked, tuple(link_tariffs.changes_s(first_s, last_s).tolist()), disks)
    commodities = []
    for transfer in full.asked:
        src, dst = full.ends(transfer)
        hops = of.paths(src, dst)
        slots = [
            slot
            for slot in range(full.slots)
            if full.cuts[slot] >= transfer.start_s and full.cuts[slot + 1] <= transfer.deadline_s
        ]
        commodities.append(
            Commodity(
                src,
                dst,
                8 * transfer.volume_gb,
                slots[0],
                slots[-1],
                np.array([hop for hop in hops if hop != dst], dtype=np.int64),
                dst in hops,
            )
        )
    resources = of.resources()
    program = ScheduleProgram(
        resources,
        of.fees / 8,
        full.cuts,
        commodities,
        link_tariffs,
        {site: Disk(8 * gb, usd / 8 / MONTH_S) for site, (gb, usd) in disks.items()},
    )
    return program, full


def assert_carried(program: ScheduleProgram, full: Full, moved: set[int]) -> None:
    """Check the rates of the last solution: all volumes, no cap exceeded, nothing out of window."""
    of = full.of
    volumes = np.zeros(len(full.asked))
    used = np.zeros((full.slots, len(of.limits)))
    for flow in program.flows():
        commodity = program.commodities[flow.commodity]
        assert commodity.first <= flow.slot <= commodity.last
        assert flow.route[1] in of.paths(flow.route[0], flow.route[-1])
        if commodity.delivers(flow.route):
            volumes[flow.commodity] += flow.rate_gbps * program.lengths_s[flow.slot]
        for row, load in of.loads(flow.route[0], flow.route[1], flow.route[-1]).items():
            used[flow.slot, row] += load * flow.rate_gbps
    assert {number for number in range(len(volumes)) if volumes[number]} == moved
    for number in moved:
        assert volumes[number] == pytest.approx(full.volumes[number], rel=1e-9)
    assert (used <= of.limits * (1 + 1e-5)).all()


def admitted(program: ScheduleProgram, full: Full) -> set[int]:
    """Admit transfers one by one where they fit, checking every step."""
    inside: set[int] = set()
    for number, volume in enumerate(full.volumes):
        program.put([number], "wanted")
        share = full.most_moved_gbit(inside, number) / volume
        assert program.most_moved(number) == pytest.approx(share, abs=1e-6)
        if abs(share - WHOLE) > 1e-5:  # neither solver is surer than this
            assert program.fits(number) == (share >= WHOLE)
        fits = program.fits(number)
        program.put([number], "in" if fits else "out")
        inside |= {number} if fits else set()
    return inside


@pytest.mark.parametrize("fill", [0.2, 0.8])
@pytest.mark.parametrize("seed", range(10))
def test_what_fits_and_what_it_costs(seed: int, fill: float) -> None:
    program, full = both(seed, fill)
    inside = admitted(program, full)
    assert inside
    exact_usd = full.least_fees(inside)
    least_usd, bound_usd = program.least_fees()
    assert least_usd == pytest.approx(exact_usd, rel=1e-5)
    assert bound_usd <= exact_usd * (1 + 1e-6)
    assert_carried(program, full, inside)
    mean_s = mean_time_s(program)
    program.earliest(least_usd * (1 + 1e-9))
    assert_carried(program, full, inside)
    assert mean_time_s(program) <= mean_s * (1 + 1e-6)
    usd = sum(
        program.along(flow.route)[1] * flow.rate_gbps * program.lengths_s[flow.slot]
        for flow in program.flows()
    )
    assert usd <= least_usd * (1 + 1e-5)


def mean_time_s(program: ScheduleProgram) -> float:
    """Return the sum of the mean times at which transfers send."""
    total: float = sum(
        flow.rate_gbps
        * program.lengths_s[flow.slot]
        * program.middles_s[flow.slot]
        / program.commodities[flow.commodity].volume_gbit
        for flow in program.flows()
    )
    return total


def fewest_vms(full: Full, most: Floats) -> float | None:
    """Return the least sum of further VMs, in fractions, that lets everything be moved."""
    sites = len(full.of.rate)
    lengths = np.diff(full.cuts)
    entries = [
        (slot * len(full.of.limits) + row, site, -lengths[slot])
        for slot in range(full.slots)
        for row, site in enumerate(full.of.row_sites.tolist())
    ]
    row_of, column_of, value = zip(*entries, strict=True)
    more = coo_matrix((value, (row_of, column_of)), shape=(full.caps.shape[0], sites))
    nothing = coo_matrix((full.moved.shape[0], sites))
    width = full.caps.shape[1]
    solved = linprog(
        np.concatenate([np.zeros(width), np.ones(sites)]),
        A_ub=vstack([hstack([full.caps, more]), hstack([-full.moved, nothing])]),
        b_ub=np.concatenate([full.limits, -full.volumes]),
        bounds=[(0, None)] * width + [(0, limit) for limit in most],
        method="highs",
    )
    assert solved.status in {0, 2}, solved.message
    return float(solved.fun) if solved.status == 0 else None


@pytest.mark.parametrize("seed", range(10))
def test_the_fewest_vms_that_make_room(seed: int) -> None:
    program, full = both(seed, 2.5)
    everything = range(len(full.asked))
    program.put(everything, "in")
    sites = len(full.of.rate)
    fixed = {0: 0.25} if seed % 2 else {}
    most = np.full(sites, np.inf)
    most[list(fixed)] = list(fixed.values())
    exact = fewest_vms(full, most)
    found = program.fewest_vms(fixed)
    if exact is None:
        assert found is None
        return
    assert found is not None
    more, bound = found
    assert more.sum() == pytest.approx(exact, rel=1e-5, abs=1e-6)
    assert bound <= exact * (1 + 1e-6) + 1e-6
    assert (more <= most + 1e-9).all()


@pytest.mark.parametrize("seed", range(6))
def test_a_shorter_window_moves_no_more_and_a_longer_one_no_less(seed: int) -> None:
    program, full = both(seed, 0.8)
    number = max(range(len(full.asked)), key=lambda n: program.commodities[n].last)
    commodity = program.commodities[number]
    program.put([number], "wanted")
    shares = []
    for last in range(commodity.first, commodity.last + 1):
        program.let_send_until(number, last)
        shares.append(program.most_moved(number))
        assert max((flow.slot for flow in program.flows()), default=last) <= last
    assert all(a <= b + 1e-7 for a, b in pairwise(shares))
    share = full.most_moved_gbit(set(), number) / full.volumes[number]
    assert shares[-1] == pytest.approx(share, abs=1e-6)
