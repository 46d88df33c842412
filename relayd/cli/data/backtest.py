"""``relayd backtest``: a replay of stored history, for people or as JSON."""

from __future__ import annotations

import argparse

from planner.model.units import duration_text, gbps_text, usd_text, volume_text
from relayd.backtesting.request import BacktestRequest
from relayd.backtesting.result import Backtest, ExploredHistory, PairsResult, StrategyResult
from relayd.backtesting.running import replayed
from relayd.cli import text
from relayd.cli.questions.options import one_thread, request_from
from relayd.cli.text import filled, notes_block, percent

NAMES = {
    "relayd": "following relayd",
    "direct": "always direct",
    "relay": "always the best relay",
    "hindsight": "hindsight",
    "predicted": "always the predicted best",
    "exploring": "exploring",
}


def run(options: argparse.Namespace) -> int:
    """Replay history and print the result."""
    one_thread()
    found = ask(options)
    print(found.model_dump_json(indent=2) if options.json else human(found))
    return 0


def ask(options: argparse.Namespace) -> Backtest:
    """Turn the options into a replay, and run it."""
    # Only now: NumPy reads how many threads it may use when it is first imported.
    request = request_from(options, BacktestRequest)
    return replayed(request, options.db, options.dask, options.catalogue)


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
        text.styled(verdict, text.BOLD) + "\n" + filled(head),
        filled(f"{asked} {counts}"),
        _strategies(found),
        _providers(found),
        _coverage(found),
        *([_explored(found.explored, found.objective)] if found.explored else []),
        *notes_block(found.warnings),
    ]
    return "\n\n".join(blocks)


def _strategies(found: Backtest) -> str:
    by_time = found.objective == "time"

    def row(followed: StrategyResult) -> tuple[str, ...]:
        regret = duration_text(followed.regret) if by_time else usd_text(followed.regret)
        return (
            NAMES[followed.strategy],
            percent(followed.achieved),
            percent(followed.achieved_p10),
            gbps_text(followed.throughput_gbps),
            duration_text(followed.time_s),
            usd_text(followed.cost_usd),
            regret,
            f"{followed.switches_a_day:.2f}",
        )

    header = (
        "mean of all decisions",
        "achieved",
        "p10",
        "Gbit/s",
        "time",
        "$",
        "regret" if by_time else "$ regret",
        "switches",
    )
    table = text.table(header, [row(followed) for followed in found.total.strategies])
    worth = (
        "of time"
        if by_time
        else "of cost"
        if found.objective == "cost"
        else f"of cost plus time at {found.time_value_usd_per_h:g} $/h"
    )
    told = filled(
        f"Achieved: hindsight's value over the strategy's, {worth}; p10: its 10th percentile. "
        "Regret: value beyond hindsight's. Switches: by pair and day."
    )
    stalled = [
        f"{NAMES[one.strategy]}: {one.stalled:,}" for one in found.total.strategies if one.stalled
    ]
    if stalled:
        told += "\n" + filled(
            "Paths that then carried nothing (0 achieved, left out of the other means): "
            f"{', '.join(stalled)}."
        )
    return f"{table}\n{told}"


def _providers(found: Backtest) -> str:
    def row(name: str, among: PairsResult) -> tuple[str, ...]:
        if not among.concluded:
            return (name, f"{among.judged:,}", "too few", *["-"] * 6)
        relayd, direct, relay = (among.of(one) for one in ("relayd", "direct", "relay"))
        return (
            name,
            f"{among.judged:,}",
            percent(among.relayed),
            percent(among.right),
            percent(relayd.achieved),
            percent(relayd.achieved_p10),
            percent(direct.achieved),
            percent(relay.achieved),
            f"{relayd.switches:,}",
        )

    header = (
        "from > to",
        "decisions",
        "relayed",
        "right",
        "relayd",
        "p10",
        "direct",
        "relay",
        "switches",
    )
    rows = [row(f"{group.src} > {group.dst}", group.found) for group in found.by_providers]
    return text.table(header, rows)


def _coverage(found: Backtest) -> str:
    def row(name: str, among: PairsResult) -> tuple[str, ...]:
        coverage = among.coverage
        if coverage is None:
            return (name, "0", "-", "-")
        between = f"{percent(coverage.low)} to {percent(coverage.high)}"
        return (name, f"{coverage.predictions:,}", percent(coverage.share), between)

    rows = [row("all", found.total)]
    rows += [row(f"{group.src} > {group.dst}", group.found) for group in found.by_providers]
    table = text.table(("from > to", "predictions", "in bounds", "95 % interval"), rows)
    return (
        table
        + "\n"
        + filled(
            "In bounds: measurements of direct links within the 90 % bounds of before their step."
        )
    )


def _explored(found: ExploredHistory, objective: str) -> str:
    """Return what exploring brings, beside always the path that is predicted best."""
    by_time = objective == "time"
    rows = [
        (
            NAMES[one.policy],
            duration_text(one.value) if by_time else usd_text(one.value),
            percent(found.lost(one.policy)),
            f"{one.trials:,}",
        )
        for one in found.policies
    ]
    table = text.table(
        ("transfers that learn", "time" if by_time else "$ value", "lost", "trials"), rows
    )
    told = (
        f"{found.transfers:,} transfers of {found.pairs:,} pairs, which know the estimates of "
        "their first step and then only what earlier ones had. Trials may cost "
        f"{percent(found.share)} of what transfers cost. Lost: beyond hindsight."
    )
    return table + "\n" + filled(told)
