"""How ``relayd verify`` shows what it would run, and what it has found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.model.network import Snapshot
from planner.model.units import duration_text, gbps_text, usd_text, volume_text
from probes.verification.predictions import Judgement, Limit, PlanPath, PlanPrediction, RateRange
from probes.verification.runs import LIMITS, Run, cost_usd, links_of, volume_gb
from relayd.campaigns.verifying import Verification, Verifier
from relayd.cli import text

KINDS = {"plan": "plan", "direct": "direct alone", LIMITS: "a quarter more", "apart": "link alone"}
SHOWN_PATHS = 8
WORDS: dict[Judgement, str] = {"within": "as predicted", "below": "BELOW", "above": "ABOVE"}


# ---- before ------------------------------------------------------------------------------------


def forecast_text(plans: Sequence[Verification], verifier: Verifier) -> str:
    """Return hosts, time, and the volume and dollars expected of every run; at most, of all."""
    rows, notes = [], []

    def add(name: str, runs: Sequence[Run], *, at_most: bool = False) -> None:
        taken = _taken(runs, verifier, at_most=at_most)
        rows.append(
            [
                name,
                str(len(taken["hosts"])),
                duration_text(taken["duration_s"]),
                volume_text(taken["volume_gb"]),
                usd_text(taken["egress_usd"]),
            ]
        )

    for one in plans:
        for run in one.runs:
            add(_name(run), [run])
        if rechecks := one.most_rechecks():
            add("  rechecks, if needed", rechecks)
        notes += one.notes
    add("in all, at most", _everything(plans), at_most=True)
    shown = [text.table(("run", "hosts", "time", "volume", "$ egress"), rows)]
    return "\n\n".join([*shown, *text.notes_block(notes)])


def _everything(plans: Sequence[Verification]) -> list[Run]:
    return [run for one in plans for run in (*one.runs, *one.most_rechecks())]


def _taken(runs: Sequence[Run], verifier: Verifier, *, at_most: bool = False) -> dict[str, Any]:
    sent = links_of(runs, at_most=at_most)
    return {
        "hosts": sorted({host for run in runs for host in run.hosts}),
        "duration_s": round(sum(run.duration_s for run in runs), 3),
        "volume_gb": volume_gb(sent),
        "egress_usd": cost_usd(sent, verifier.price),
    }


def _name(run: Run) -> str:
    if len(run.paths) > 3:
        return f"{KINDS[run.kind]}: {run.prediction.title}, {len(run.paths)} paths"
    return f"{KINDS[run.kind]}: {', '.join(' -> '.join(path.regions) for path in run.paths)}"


def forecast_json(plans: Sequence[Verification], verifier: Verifier) -> dict[str, Any]:
    """Return the same as plain values."""
    return {
        "plans": [
            {
                "plan_id": one.plan.plan_id,
                **_asked(one.plan),
                "runs": [
                    {
                        "run": run.kind,
                        "paths": [list(path.regions) for path in run.paths],
                        "measured_s": run.measured_s,
                        **_taken([run], verifier),
                    }
                    for run in one.runs
                ],
                "second_looks": _taken(one.most_rechecks(), verifier),
                "notes": one.notes,
            }
            for one in plans
        ],
        "at_most": _taken(_everything(plans), verifier, at_most=True),
    }


def _asked(plan: PlanPrediction) -> dict[str, Any]:
    return {
        "question": plan.question,
        "src": plan.src or None,
        "dst": plan.dst or None,
        "verdict": plan.verdict,
    }


# ---- after -------------------------------------------------------------------------------------


def human(plans: Sequence[Verification], verifier: Verifier, snapshot: Snapshot | None) -> str:
    """Return predicted against achieved for people."""
    blocks = []
    for one in plans:
        plan = one.plan
        rows = [row for run in one.compared for row in _rows(run)]
        rows += [_filled_row(*filled) for filled in one.filled()]
        rows += [row for recheck in one.rechecked for row in _rows(recheck)]
        block = text.styled(f"{plan.title}, {plan.verdict}, plan {plan.plan_id}", text.BOLD)
        if rows:
            header = ("run", "connections", "low", "predicted", "high", "achieved", "ratio", "")
            block += "\n" + text.table(header, rows)
        blocks.append(block)
        relays = {host: program for run in one.ended for host, program in run.relays.items()}
        if relays:
            named = ", ".join(f"{host} ({program})" for host, program in relays.items())
            blocks.append(f"Relayed by {named}.")
        if one.error:
            blocks.append(text.filled(f"Failed: {one.error}"))
        blocks += text.notes_block(one.notes)
    gb, usd = _spent(plans, verifier)
    samples = sum(len(one.samples) for one in plans)
    end = f"Rates are in Gbit/s. {volume_text(gb)} moved, ${usd_text(usd)}; "
    end += f"{samples} samples of links stored."
    if snapshot:
        end += f" Snapshot {snapshot.id}, as of {snapshot.as_of}."
    blocks.append(text.filled(end))
    return "\n\n".join(blocks)


def _rows(run: Run) -> list[tuple[str, ...]]:
    rows = []
    if len(run.paths) > 1:
        connections = sum(path.connections for path in run.paths)
        rows.append(_row(KINDS[run.kind], connections, run.prediction.rate, run.achieved_gbps))
    furthest = sorted(run.paths, key=_error, reverse=True)
    shown = run.paths if len(furthest) <= SHOWN_PATHS else furthest[:SHOWN_PATHS]
    for path in shown:
        way = " -> ".join(path.regions)
        name = f"  {way}" if rows else f"{KINDS[run.kind]}: {way}"
        if run.kind == "apart":
            least = "at least " if path.is_rate_limited else ""
            achieved = least + gbps_text(path.achieved_gbps)
            rows.append((name, str(path.connections), "", "", "", achieved, "", ""))
        else:
            rows.append(_row(name, path.connections, path.rate, path.achieved_gbps))
    if hidden := len(run.paths) - len(shown):
        rows.append((f"  {hidden} nearer to what was predicted", *[""] * 7))
    return rows


def _error(path: PlanPath) -> float:
    return abs(path.achieved_gbps / path.rate.expected_gbps - 1)


def _filled_row(limit: Limit, rate: RateRange, gbps: float) -> tuple[str, ...]:
    """Return the row of a limit that the plan fills, from the run that was allowed more."""
    kind, regions = limit
    name = " -> ".join(regions) if kind == "link" else f"{kind} of {regions[0]}"
    row = _row(f"full: {name}", 0, rate, gbps)
    return (row[0], "", *row[2:-1], row[-1] if rate.judged(gbps) != "below" else "")


def _row(name: str, connections: int, rate: RateRange, achieved_gbps: float) -> tuple[str, ...]:
    bounds = rate.of_one_run()
    return (
        name,
        str(connections),
        gbps_text(bounds.low_gbps),
        gbps_text(bounds.expected_gbps),
        gbps_text(bounds.high_gbps),
        gbps_text(achieved_gbps),
        f"{achieved_gbps / bounds.expected_gbps:.2f}",
        WORDS[rate.judged(achieved_gbps)],
    )


def _spent(plans: Sequence[Verification], verifier: Verifier) -> tuple[float, float]:
    sent = [link for one in plans for link in one.sent]
    return volume_gb(sent), cost_usd(sent, verifier.price)


def as_json(
    plans: Sequence[Verification], verifier: Verifier, snapshot: Snapshot | None
) -> dict[str, Any]:
    """Return the same as plain values."""
    gb, usd = _spent(plans, verifier)
    return {
        "plans": [
            {
                "plan_id": one.plan.plan_id,
                "snapshot_id": one.plan.snapshot_id,
                **_asked(one.plan),
                "vms": one.runs[0].prediction.vms,
                "share_of_vms": one.runs[0].prediction.share,
                "held": one.is_as_predicted and one.error is None,
                "runs": [_run_json(run) for run in one.ended],
                "full": [
                    {"limit": kind, "regions": list(regions), **_compared(rate, gbps)}
                    for (kind, regions), rate, gbps in one.filled()
                ],
                "second_looks": [
                    {
                        "path": list(recheck.paths[0].regions),
                        "achieved_gbps": recheck.achieved_gbps,
                        "held_back": recheck.paths[0].is_rate_limited,
                    }
                    for recheck in one.rechecked
                ],
                "samples": [
                    {
                        "src": s.src,
                        "dst": s.dst,
                        "metric": s.metric,
                        "value": s.value,
                        "connections": s.connections,
                    }
                    for s in one.samples
                ],
                "error": str(one.error) if one.error else None,
                "notes": one.notes,
            }
            for one in plans
        ],
        "sent_gb": gb,
        "egress_usd": usd,
        "snapshot": snapshot and {"id": snapshot.id, "as_of": snapshot.as_of},
    }


def _run_json(run: Run) -> dict[str, Any]:
    return {
        "run": run.kind,
        "measured_s": run.measured_s,
        "relays": dict(run.relays),
        **_compared(run.prediction.rate, run.achieved_gbps),
        "paths": [
            {
                "regions": list(path.regions),
                "connections": path.connections,
                "vm_pairs": len(path.streams),
                **_compared(path.rate, path.achieved_gbps),
            }
            for path in run.paths
        ],
        "vms": [
            {
                "region": regions[0],
                "direction": "out" if kind == "egress cap" else "in",
                "expected_gbps": expected_gbps,
                "achieved_gbps": achieved_gbps,
            }
            for (kind, regions), (expected_gbps, achieved_gbps) in run.carried().items()
            if kind != "link"
        ],
    }


def _compared(rate: RateRange, achieved_gbps: float) -> dict[str, Any]:
    bounds = rate.of_one_run()
    return {
        "low_gbps": bounds.low_gbps,
        "expected_gbps": bounds.expected_gbps,
        "high_gbps": bounds.high_gbps,
        "achieved_gbps": achieved_gbps,
        "judgement": rate.judged(achieved_gbps),
    }
