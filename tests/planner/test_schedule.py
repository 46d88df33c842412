"""Schedules: equal to an independent program, within caps at every moment, promises kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.planner.schedules import Full, assert_kept, transfers, world

WITHIN = 1e-5


@pytest.mark.parametrize("seed", range(120))
def test_admission_and_fees_are_those_of_a_program_over_all_slots_and_paths(seed: int) -> None:
    of = world(seed)
    asked = transfers(of, seed, 4 + seed % 7, [0.3, 1.0, 2.0][seed % 3])
    full = Full(of, asked)
    plan = of.schedule(*asked, explain=1)
    assert_kept(of, plan)
    admitted = {n for n, t in enumerate(plan.transfers) if t.verdict == "admitted"}
    assert admitted == full.admitted()
    if admitted:
        least_usd = full.least_fees(admitted)
        assert plan.cost_usd.egress == pytest.approx(least_usd, rel=WITHIN)
        assert plan.bound_usd <= least_usd * (1 + 1e-7)
        assert plan.bound_usd == pytest.approx(least_usd, rel=1e-3)
    refused = next((t for t in plan.transfers if t.remedies), None)
    if refused and refused.remedies:
        number = plan.transfers.index(refused)
        most_gb = full.most_moved_gbit(admitted, number) / 8
        assert refused.remedies.volume_gb == pytest.approx(most_gb, rel=WITHIN, abs=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_remedies_do_when_applied_and_less_would_not(seed: int) -> None:
    of = world(seed)
    asked = transfers(of, seed, 6, 2.0)
    plan = of.schedule(*asked)
    before = {t.id for t in plan.transfers if t.verdict == "admitted"}
    for number, refused in enumerate(plan.transfers):
        remedies = refused.remedies
        if remedies is None:
            continue

        def admits(change: dict[str, float], at: int = number, more: dict[str, int] | None = None
                   ) -> bool:  # fmt: skip
            changed = [*asked]
            changed[at] = replace(asked[at], **change)  # type: ignore[arg-type]
            if more:  # others that are refused would take them, if they go first
                changed = [t for t in changed if t.id in before or t.id == asked[at].id]
            again = of.with_vms(more or {}).schedule(*changed, explain=0)
            kept = {t.id for t in again.transfers if t.verdict == "admitted"}
            return {*before, refused.id} <= kept

        assert admits({"deadline_s": remedies.deadline_s})
        assert not admits({"deadline_s": remedies.deadline_s - 1.01})
        if remedies.volume_gb > 0:
            assert admits({"volume_gb": remedies.volume_gb})
            assert not admits({"volume_gb": remedies.volume_gb * 1.001})
        assert remedies.more_vms is not None
        assert admits({}, more=remedies.more_vms.vms)
        assert 1 <= remedies.more_vms.at_least <= sum(remedies.more_vms.vms.values())
