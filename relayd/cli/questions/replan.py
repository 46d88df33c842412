"""``relayd replan``: whether to keep to a plan in progress, for people or as JSON."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from planner.model.answer import Bounded
from planner.model.errors import InputError
from planner.model.units import gbps_text, parse_duration_s, parse_volume_gb
from planner.replanning.plan import Continuation, Replan
from planner.replanning.request import ReplanRequest
from relayd.cli import text
from relayd.cli.options import assignments, wan_of, whole_number
from relayd.cli.text import filled, notes_block


def run(options: argparse.Namespace) -> int:
    """Answer one request."""
    options.request = ReplanRequest
    # Small matrices gain nothing from threads; NumPy's libraries read these when first imported.
    for library in ("OPENBLAS", "MKL", "OMP"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    answer = ask(options)
    print(answer.model_dump_json(indent=2) if options.json else human(answer))
    return 0


def ask(options: argparse.Namespace) -> Replan:
    """Turn the options into a question, and ask."""
    month = assignments(options.month_to_date, "--month-to-date", "*")
    return wan_of(options).replan(
        _read(options.plan),
        moved_gb=_moved(options.moved),
        elapsed_s=parse_duration_s(options.elapsed, "--elapsed"),
        changes=whole_number(options.changes, "--changes"),
        month_to_date_gb={
            provider: parse_volume_gb(size, "--month-to-date") for provider, size in month.items()
        },
        vm_types=assignments(options.vm_type, "--vm-type", None),
    )


def _read(name: str) -> str:
    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        problem = getattr(fault, "strerror", None) or "is not text"
        raise InputError("plan", f"can't be read: {problem}", value=name) from None


def _moved(words: list[str]) -> float | dict[tuple[str, str], float]:
    """Read one volume, or a volume for each of a shuffle's pairs."""
    if len(words) == 1 and "=" not in words[0]:
        return parse_volume_gb(words[0], "--moved")
    found: dict[tuple[str, str], float] = {}
    for pair, size in assignments(words, "--moved", None).items():
        src, arrow, dst = pair.partition(">")
        if not arrow:
            raise InputError(
                "--moved", "names no pair", value=pair, remedy="Write --moved 'SRC>DST=50GB'."
            )
        found[src.strip(), dst.strip()] = parse_volume_gb(size, "--moved")
    return found


def human(answer: Replan) -> str:
    """Return an answer for people: verdict and reason, both ways, what changing takes."""
    verdict = "Keep to the plan." if answer.verdict == "keep" else "Change the plan."
    rate = ""
    if answer.observed_gbps is not None and answer.planned_gbps is not None:
        rate = (
            f", at {gbps_text(answer.observed_gbps)} Gbit/s "
            f"(planned: {gbps_text(answer.planned_gbps)})"
        )
    head = (
        f"{answer.kind} {answer.plan_id}, {text.volume(answer.remaining_gb)} left after "
        f"{text.duration(answer.elapsed_s)}{rate}"
    )
    blocks = [text.styled(verdict, text.BOLD) + f"\n{head}", filled(answer.reason), _ways(answer)]
    if answer.cost_of_change:
        blocks.append(filled(_cost_of_change(answer)))
    if answer.verdict == "change":
        blocks.append(filled("--json has the new plan, under `plan`."))
    snapshot = answer.snapshot
    blocks.append(
        filled(
            f"Planned on snapshot {answer.planned_on}; now snapshot {snapshot.id} "
            f"({snapshot.source}), as of {snapshot.as_of}."
        )
    )
    blocks += notes_block(answer.warnings)
    return "\n\n".join(blocks)


def _ways(answer: Replan) -> str:
    def row(name: str, way: Continuation | None) -> tuple[str, ...]:
        if way is None:
            return (name, *["-"] * 4)
        bounds = f"{text.duration(way.duration_s_low)} to {text.duration(way.duration_s_high)}"
        cost = way.cost_usd
        return (
            name,
            text.duration(way.duration_s),
            bounds,
            text.usd(cost.egress),
            text.usd(cost.vm),
        )

    rows = [row("keep", answer.keep), row("change", answer.change)]
    return text.table(("from now on", "time", "bounds", "$ egress", "$ VM"), rows)


def _cost_of_change(answer: Replan) -> str:
    change, gain = answer.cost_of_change, answer.gain
    assert change is not None
    assert gain is not None
    parts = []
    if change.vms_to_start:
        vms = ", ".join(f"{n} at {region}" for region, n in change.vms_to_start.items())
        parts.append(f"start {vms} ({text.duration(change.wait_s)}, the old plan goes on)")
    if change.vms_to_stop:
        vms = ", ".join(f"{n} at {region}" for region, n in change.vms_to_stop.items())
        parts.append(f"stop {vms}")
    if change.ramp_up_s:
        parts.append(f"{text.duration(change.ramp_up_s)} to get new paths up to speed")
    what = "; ".join(parts) if parts else "nothing to start or to wait for"
    return (
        f"Changing takes: {what}; ${text.usd(change.usd)} in all. Gain {_range(gain)}; "
        f"{answer.needed_gain:.2f}x at the low bound are needed."
    )


def _range(of: Bounded) -> str:
    return f"{of.expected:.2f}x ({of.low:.2f}x to {of.high:.2f}x)"
