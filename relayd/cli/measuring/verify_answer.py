"""How ``relayd verify`` shows what it would run, and what it has found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.model.network import Snapshot
from planner.model.units import duration_text, gbps_text, usd_text, volume_text
from probes.verification.full_limits import FullLimit
from probes.verification.limits import cost_usd, links_usd, volume_gb
from probes.verification.outcomes import Judgement, PathOutcome, RunOutcome, judged
from probes.verification.predictions import PlanPrediction, RateRange
from probes.verification.runs import LIMITS, Run
from relayd.campaigns.verifying import Verification, VerificationJob, Verifier
from relayd.cli import text

KINDS = {"plan": "plan", "direct": "direct alone", LIMITS: "a quarter more", "apart": "link alone"}
SHOWN_PATHS = 8
WORDS: dict[Judgement, str] = {"within": "as predicted", "below": "BELOW", "above": "ABOVE"}


# ---- before ------------------------------------------------------------------------------------


def forecast_text(jobs: Sequence[VerificationJob], verifier: Verifier) -> str:
    """Return hosts, time, and the volume and dollars expected of every run; at most, of all."""
    rows, notes = [], []
    for job in jobs:
        rows += [_forecast_row(_name(run), [run], verifier) for run in job.runs]
        if rechecks := job.rechecks():
            rows.append(_forecast_row("  rechecks, if needed", rechecks, verifier))
        notes += job.notes
    everything = [run for job in jobs for run in (*job.runs, *job.rechecks())]
    rows.append(_forecast_row("in all, at most", everything, verifier, at_most=True))
    shown = [text.table(("run", "hosts", "time", "volume", "$ egress"), rows)]
    return "\n\n".join([*shown, *text.notes_block(notes)])


def _name(run: Run) -> str:
    if len(run.paths) > 3:
        return f"{KINDS[run.kind]}: {run.prediction.title}, {len(run.paths)} paths"
    paths = ", ".join(" -> ".join(path.path.regions) for path in run.paths)
    return f"{KINDS[run.kind]}: {paths}"


def _forecast_row(
    name: str, runs: Sequence[Run], verifier: Verifier, *, at_most: bool = False
) -> list[str]:
    hosts = {host for run in runs for host in run.hosts}
    return [
        name,
        str(len(hosts)),
        duration_text(sum(run.duration_s for run in runs)),
        volume_text(volume_gb(runs, at_most=at_most)),
        usd_text(cost_usd(runs, verifier.price, at_most=at_most)),
    ]


def forecast_json(jobs: Sequence[VerificationJob], verifier: Verifier) -> dict[str, Any]:
    """Return the same as plain values."""

    def of(runs: Sequence[Run], *, at_most: bool = False) -> dict[str, Any]:
        return {
            "hosts": sorted({host for run in runs for host in run.hosts}),
            "duration_s": round(sum(run.duration_s for run in runs), 3),
            "volume_gb": volume_gb(runs, at_most=at_most),
            "egress_usd": cost_usd(runs, verifier.price, at_most=at_most),
        }

    everything = [run for job in jobs for run in (*job.runs, *job.rechecks())]
    return {
        "plans": [
            {
                "plan_id": job.plan.plan_id,
                **_asked(job.plan),
                "runs": [
                    {
                        "run": run.kind,
                        "paths": [list(path.path.regions) for path in run.paths],
                        "measured_s": run.measured_s,
                        **of([run]),
                    }
                    for run in job.runs
                ],
                "second_looks": of(job.rechecks()),
                "notes": job.notes,
            }
            for job in jobs
        ],
        "at_most": of(everything, at_most=True),
    }


def _asked(plan: PlanPrediction) -> dict[str, Any]:
    return {
        "question": plan.question,
        "src": plan.src or None,
        "dst": plan.dst or None,
        "verdict": plan.verdict,
    }


# ---- after -------------------------------------------------------------------------------------


def human(found: Sequence[Verification], verifier: Verifier, snapshot: Snapshot | None) -> str:
    """Return predicted against achieved for people."""
    blocks = []
    for one in found:
        plan = one.job.plan
        head = f"{plan.title}, {plan.verdict}, plan {plan.plan_id}"
        rows = [
            row for outcome in one.outcomes if outcome.run.kind != LIMITS for row in _rows(outcome)
        ]
        rows += _filled_rows(one)
        rows += [row for recheck in one.rechecks for row in _rows(recheck)]
        block = text.styled(head, text.BOLD)
        if rows:
            header = ("run", "connections", "low", "predicted", "high", "achieved", "ratio", "")
            block += "\n" + text.table(header, rows)
        blocks.append(block)
        if relays := _relays(one):
            blocks.append(relays)
        if one.error:
            blocks.append(text.filled(f"Failed: {one.error}"))
        blocks += text.notes_block([*one.job.notes, *one.notes])
    gb, usd = _spent(found, verifier)
    samples = sum(len(one.samples) for one in found)
    end = f"Rates are in Gbit/s. {volume_text(gb)} moved, ${usd_text(usd)}; "
    end += f"{samples} samples of links stored."
    if snapshot:
        end += f" Snapshot {snapshot.id}, as of {snapshot.as_of}."
    blocks.append(text.filled(end))
    return "\n\n".join(blocks)


def _rows(outcome: RunOutcome) -> list[tuple[str, ...]]:
    rows = []
    if len(outcome.paths) > 1:
        connections = sum(path.run.path.connections for path in outcome.paths)
        rows.append(
            _row(
                KINDS[outcome.run.kind],
                connections,
                outcome.run.prediction.rate,
                outcome.achieved_gbps,
            )
        )
    furthest = sorted(outcome.paths, key=_error, reverse=True)
    shown = outcome.paths if len(furthest) <= SHOWN_PATHS else furthest[:SHOWN_PATHS]
    for path in shown:
        way = " -> ".join(path.run.path.regions)
        name = f"  {way}" if rows else f"{KINDS[outcome.run.kind]}: {way}"
        if outcome.run.kind == "apart":
            rows.append((name, str(path.run.path.connections), "", "", "", _achieved(path), "", ""))
        else:
            rate = path.run.path.rate
            rows.append(_row(name, path.run.path.connections, rate, path.achieved_gbps))
    if hidden := len(outcome.paths) - len(shown):
        rows.append((f"  {hidden} nearer to what was predicted", *[""] * 7))
    return rows


def _error(path: PathOutcome) -> float:
    return abs(path.achieved_gbps / path.run.path.rate.expected_gbps - 1)


def _filled_rows(one: Verification) -> list[tuple[str, ...]]:
    """Return a row for each limit that the plan fills, from the run that was allowed more."""
    rows = []
    for full, gbps, judgement in one.filled():
        row = _row(f"full: {_limit_text(full)}", 0, full.rate, gbps)
        rows.append((row[0], "", *row[2:-1], WORDS[judgement] if judgement != "below" else ""))
    return rows


def _limit_text(full: FullLimit) -> str:
    if full.kind == "link":
        return " -> ".join(full.regions)
    return f"{full.kind} of {full.regions[0]}"


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
        WORDS[judged(achieved_gbps, rate)],
    )


def _achieved(path: PathOutcome) -> str:
    return ("at least " if path.is_rate_limited else "") + gbps_text(path.achieved_gbps)


def _relays(one: Verification) -> str:
    relays = {host: program for outcome in one.outcomes for host, program in outcome.relays.items()}
    named = ", ".join(f"{host} ({program})" for host, program in relays.items())
    return f"Relayed by {named}." if named else ""


def _spent(found: Sequence[Verification], verifier: Verifier) -> tuple[float, float]:
    sent = [link for one in found for link in one.sent]
    return sum(gb for _, _, gb in sent), links_usd(sent, verifier.price)


def as_json(
    found: Sequence[Verification], verifier: Verifier, snapshot: Snapshot | None
) -> dict[str, Any]:
    """Return the same as plain values."""
    gb, usd = _spent(found, verifier)
    return {
        "plans": [
            {
                "plan_id": one.job.plan.plan_id,
                "snapshot_id": one.job.plan.snapshot_id,
                **_asked(one.job.plan),
                "vms": one.job.runs[0].prediction.vms,
                "share_of_vms": one.job.runs[0].prediction.share,
                "held": one.is_as_predicted and one.error is None,
                "runs": [_run_json(outcome) for outcome in one.outcomes],
                "full": [
                    {
                        "limit": full.kind,
                        "regions": list(full.regions),
                        **_compared(full.rate, gbps),
                    }
                    for full, gbps, _ in one.filled()
                ],
                "second_looks": [
                    {
                        "path": list(recheck.paths[0].run.path.regions),
                        "achieved_gbps": recheck.achieved_gbps,
                        "held_back": recheck.paths[0].is_rate_limited,
                    }
                    for recheck in one.rechecks
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
                "notes": [*one.job.notes, *one.notes],
            }
            for one in found
        ],
        "sent_gb": gb,
        "egress_usd": usd,
        "snapshot": snapshot and {"id": snapshot.id, "as_of": snapshot.as_of},
    }


def _run_json(outcome: RunOutcome) -> dict[str, Any]:
    return {
        "run": outcome.run.kind,
        "measured_s": outcome.run.measured_s,
        "relays": dict(outcome.relays),
        **_compared(outcome.run.prediction.rate, outcome.achieved_gbps),
        "paths": [
            {
                "regions": list(path.run.path.regions),
                "connections": path.run.path.connections,
                "vm_pairs": len(path.run.streams),
                **_compared(path.run.path.rate, path.achieved_gbps),
            }
            for path in outcome.paths
        ],
        "vms": [
            {
                "region": regions[0],
                "direction": "out" if kind == "egress cap" else "in",
                "expected_gbps": expected_gbps,
                "achieved_gbps": achieved_gbps,
            }
            for (kind, regions), (expected_gbps, achieved_gbps) in outcome.carried().items()
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
        "judgement": judged(achieved_gbps, rate),
    }
