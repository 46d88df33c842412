"""What happens inside tests: bursts, drops, and paths with two levels."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.analysis.series.levels import FEWEST_TESTS, LevelPattern, Levels, levels_between_tests
from probes.analysis.steady_state import changes_in, drop_cause
from probes.samples import Metric
from relayd.report.data import ReportData, provider_pair
from relayd.report.document import Section, Table

MOST_LISTED = 20
LEAST_GAP = 1.25  # less than two levels are apart
_METRICS: tuple[tuple[Metric, str], ...] = (
    ("per_flow_mbps", "one connection"),
    ("aggregate_mbps", "many connections"),
)
_WORDS = {
    "burst": "bursts at the beginning",
    "drop": "drops to a lower rate",
    "rise": "rises to a higher rate",
    "two-level": "goes back and forth between two rates",
}
_PATTERNS: dict[LevelPattern, str] = {
    "two-level": "two levels by turns",
    "shift": "one lasting shift",
    "undecided": "undecided",
}
_KEYS: tuple[tuple[LevelPattern, str], ...] = (("two-level", "two_levels"), ("shift", "shifts"))


@dataclass
class _Group:
    """Tests of one pair of providers, and what they show."""

    tests: int = 0
    changes: list[dict[str, Any]] = field(default_factory=list)


def transients(data: ReportData) -> Section:
    """Answer whether rates hold from a test's first to its last second."""
    section = Section(
        "transients",
        "Do rates hold during a transfer?",
        "Lasting changes of level in the 1 s intervals of probes: initial bursts, falls from high "
        "to low with time and volume, paths between two levels (GLOBECOM 2015, WANs between "
        "public-cloud datacenters); two levels from test to test of one pair, told by their order "
        "in time (runs, Wald and Wolfowitz 1940) from one shift that lasts.",
    )
    for metric, name in _METRICS:
        _inside_tests(data, metric, name, section)
        _between_tests(data, metric, name, section)
    section.concluded = bool(section.figures)
    return section


def _inside_tests(data: ReportData, metric: Metric, name: str, section: Section) -> None:
    groups: dict[str, _Group] = defaultdict(_Group)
    drops: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for test in data.steady_tests(metric):
        group = groups[provider_pair(test.src, test.dst)]
        group.tests += 1
        for change in changes_in(test.detail):
            group.changes.append(change)
            if change["pattern"] == "drop":
                drops[test.src, test.dst].append((change["at_s"], change["at_gb"]))
    tests = sum(group.tests for group in groups.values())
    section.samples += tests
    if not tests:
        section.statements.append(f"No test with {name} kept its intervals.")
        return
    rows: list[tuple[str, ...]] = []
    figures: list[dict[str, Any]] = []
    for providers, group in sorted(groups.items()):
        for pattern in _WORDS:
            found = [c for c in group.changes if c["pattern"] == pattern]
            if not found:
                continue
            after_s, after_gb, before, after = (
                float(np.median([change[of] for change in found]))
                for of in ("at_s", "at_gb", "before_mbps", "after_mbps")
            )
            rows.append(
                (
                    providers,
                    _WORDS[pattern],
                    f"{len(found)} of {group.tests}",
                    f"{after_s:.0f}",
                    f"{after_gb:.3g}",
                    f"{before:,.0f}",
                    f"{after:,.0f}",
                )
            )
            figures.append(
                {
                    "providers": providers,
                    "pattern": pattern,
                    "found": len(found),
                    "tests": group.tests,
                    "after_s": after_s,
                    "after_gb": after_gb,
                    "before_mbps": before,
                    "after_mbps": after,
                }
            )
    causes = {pair: drop_cause(found) for pair, found in drops.items()}
    section.figures[f"{metric}_within_tests"] = {
        "tests": tests,
        "changes": figures,
        "drop_causes": [{"src": a, "dst": b, "cause": c} for (a, b), c in causes.items()],
    }
    if not rows:
        section.statements.append(f"The rate held in all {tests} tests with {name}.")
        return
    section.tables.append(
        Table(
            f"Changes during tests with {name} (medians)",
            ("providers", "what", "tests", "after s", "after GB", "from Mbit/s", "to Mbit/s"),
            tuple(rows),
        )
    )
    share = sum(int(figure["found"]) for figure in figures) / tests
    section.statements.append(f"In tests with {name} there are {share:.2g} lasting changes a test.")
    for cause in ("time", "volume"):
        if pairs := sum(found == cause for found in causes.values()):
            section.statements.append(
                f"Paths whose rate falls after a certain {cause}, whatever the rate: {pairs}."
            )


def _between_tests(data: ReportData, metric: Metric, name: str, section: Section) -> None:
    asked = 0
    found: list[tuple[str, str, Levels]] = []
    for src, dst, rows in data.columns(metric).by_pair():
        rates = rows["value"][rows["connections"] == rows["connections"].max()]
        if len(rates) < FEWEST_TESTS:
            continue
        asked += 1
        if _has_gap(rates) and (levels := levels_between_tests(rates.tolist())):
            found.append((src, dst, levels))
    if not asked:
        section.statements.append(f"No pair was tested {FEWEST_TESTS} times with {name}.")
        return
    by_pattern: dict[LevelPattern, list[tuple[str, str, Levels]]] = {
        pattern: [item for item in found if item[2].pattern == pattern] for pattern in _PATTERNS
    }
    section.figures[f"{metric}_between_tests"] = {
        "pairs": asked,
        **{
            key: [
                {"src": a, "dst": b, "low_mbps": of.low_mbps, "high_mbps": of.high_mbps}
                for a, b, of in by_pattern[pattern]
            ]
            for pattern, key in _KEYS
        },
    }
    section.statements.append(
        f"Of {asked} pairs with {name}, {len(by_pattern['two-level'])} are at one of two levels "
        f"from test to test, {len(by_pattern['shift'])} went from one to another for good, and of "
        f"{len(by_pattern['undecided'])} the order of tests does not tell which."
    )
    if found:
        section.tables.append(
            Table(
                f"Pairs with two levels, {name}, Mbit/s",
                ("from", "to", "low", "high", "changes", "what"),
                tuple(
                    (
                        a,
                        b,
                        f"{of.low_mbps:,.0f}",
                        f"{of.high_mbps:,.0f}",
                        str(of.changes),
                        _PATTERNS[of.pattern],
                    )
                    for a, b, of in found[:MOST_LISTED]
                ),
            )
        )


def _has_gap(rates: NDArray[np.float64]) -> bool:
    """Whether two levels are possible at all; this cheap test excludes most pairs."""
    ordered = np.sort(rates)
    return bool((ordered[2:-1] > LEAST_GAP * ordered[1:-2]).any())
