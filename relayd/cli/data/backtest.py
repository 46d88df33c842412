"""``relayd study backtest``: a replay of stored history, for people or as JSON."""

from __future__ import annotations

import argparse

from planner.model.units import duration_text, usd_text, volume_text
from relayd.backtesting.replay import replayed
from relayd.backtesting.request import BacktestRequest
from relayd.backtesting.result import Backtest, PairsResult
from relayd.cli.questions.options import request_from
from relayd.cli.text import BOLD, page, percent

NAMES = {
    "relayd": "following relayd",
    "direct": "always direct",
    "relay": "always the best relay",
    "hindsight": "hindsight",
}


def run(options: argparse.Namespace) -> int:
    """Replay history and print the result."""
    request = request_from(options, BacktestRequest)
    found = replayed(request, options.db, options.dask, options.catalogue)
    print(found.model_dump_json(indent=2) if options.json else human(found))
    return 0


def human(found: Backtest) -> str:
    """Return the result as text."""
    total = found.total
    relayd = total.of("relayd")
    verdict = f"Following relayd got {percent(relayd.achieved)} of what hindsight would have got."
    head = (
        f"{found.since} to {found.until}, {found.steps:,} steps of {duration_text(found.step_s)}, "
        f"{total.judged:,} decisions on {total.pairs:,} pairs of {found.regions} regions, from "
        f"{found.samples:,} samples"
    )
    asked = (
        f"Each decision: {volume_text(found.volume_gb)}, one VM a region, {found.connections} "
        f"connections, one path, objective {found.objective}."
    )
    counts = (
        f"relayd relayed {percent(total.relayed)} (hindsight {percent(total.hindsight_relayed)}), "
        f"was right to relay or not in {percent(total.right)}, and got 99 % or more of hindsight "
        f"in {percent(total.near)}. Of the relay that looked best, it was right in "
        f"{percent(total.verdict_right)} that it is worth its while or not."
    )
    blocks = [
        page().styled(verdict, BOLD) + "\n" + page().filled(head),
        page().filled(f"{asked} {counts}"),
        _strategies(found),
        _providers(found),
        _coverage(found),
        *page().notes(found.warnings),
    ]
    return "\n\n".join(blocks)


def _strategies(found: Backtest) -> str:
    worth = {"time": "of time", "cost": "of cost"}.get(
        found.objective, f"of cost plus time at {found.time_value_usd_per_h:g} $/h"
    )
    told = (
        f"Achieved: hindsight's value over the strategy's, {worth}; p10: its 10th percentile. "
        "Regret: value beyond hindsight's. Switches: by pair and day."
    )
    shown = page().table_of(
        found.total.strategies,
        "mean of all decisions=name | achieved | p10 | Gbit/s=throughput_gbps | time=time_s | "
        "$=cost_usd | regret | switches=switches_a_day:.2f",
        name=lambda one: NAMES[one.strategy],
        achieved=lambda one: percent(one.achieved),
        p10=lambda one: percent(one.achieved_p10),
        regret=lambda one: _value(one.regret, found.objective),
    )
    stalled = [
        f"{NAMES[one.strategy]}: {one.stalled:,}" for one in found.total.strategies if one.stalled
    ]
    nothing = "Paths that then carried nothing (0 achieved, left out of the other means): "
    more = [page().filled(f"{nothing}{', '.join(stalled)}.")] if stalled else []
    return "\n".join([shown, page().filled(told), *more])


def _value(value: float, objective: str) -> str:
    return duration_text(value) if objective == "time" else usd_text(value)


def _providers(found: Backtest) -> str:
    followed = ("relayed", "right", "relayd", "p10", "direct", "relay", "switches")

    def row(name: str, among: PairsResult) -> tuple[str, ...]:
        if not among.concluded:
            return (name, f"{among.judged:,}", "too few", *["-"] * 6)
        relayd, direct, relay = (among.of(one) for one in ("relayd", "direct", "relay"))
        shares = (
            *(among.relayed, among.right, relayd.achieved, relayd.achieved_p10),
            *(direct.achieved, relay.achieved),
        )
        return (name, f"{among.judged:,}", *map(percent, shares), f"{relayd.switches:,}")

    rows = [row(f"{group.src} > {group.dst}", group.found) for group in found.by_providers]
    return page().table(("from > to", "decisions", *followed), rows)


def _coverage(found: Backtest) -> str:
    def row(name: str, among: PairsResult) -> tuple[str, ...]:
        coverage = among.coverage
        if coverage is None:
            return (name, "0", "-", "-")
        between = f"{percent(coverage.low)} to {percent(coverage.high)}"
        return (name, f"{coverage.predictions:,}", percent(coverage.share), between)

    rows = [row("all", found.total)]
    rows += [row(f"{group.src} > {group.dst}", group.found) for group in found.by_providers]
    told = "In bounds: measurements of direct links within the 90 % bounds of before their step."
    header = ("from > to", "predictions", "in bounds", "95 % interval")
    return f"{page().table(header, rows)}\n{page().filled(told)}"
