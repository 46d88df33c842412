"""Rate of false alarms of analyses: ``python -m benchmarks.false_alarms``.

Each analysis of a report gets series that have nothing but noise, some of whose neighbours resemble
each other, and the table of docs/report.md says how many it raised an alarm on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import numpy as np

import tests.conftest  # noqa: F401 - registers what tests' modules ask for as they load
from benchmarks.table import show
from probes.analysis.comparisons import paired_difference
from probes.analysis.evidence import Record
from probes.analysis.falls import rate_cut
from probes.analysis.forecast import forecast
from probes.analysis.level_shift import level_shifts, levels_between_tests
from probes.analysis.patterns import DAY_S, occurrences, periodicity
from probes.analysis.steady_state import Interval, steady_state
from probes.analysis.udp import rate_sweep
from tests.probes.analysis.test_report_analyses import resembling
from tests.probes.estimation.test_late_cuts import probe

SERIES = 300
SLOW = 150
"""Of analyses that take longer."""
SENT_MBPS = np.arange(100.0, 1300.0, 50.0)
LOSSY = 0.01
FORTNIGHT = np.arange(0, 14 * DAY_S, 1800.0)


def main() -> int:
    """Print the table."""
    rows = []
    for name, (series, alarms) in cases(np.random.default_rng(11)).items():
        found = sum(alarms() for _ in range(series))
        rows.append((name, str(series), str(found), f"{100 * found / series:.1f} %"))
        print(f"{name}: {found} of {series}", file=sys.stderr, flush=True)
    show("Alarms on series with nothing in them", ("", "series", "alarms", "share"), rows)
    return 0


def cases(generator: np.random.Generator) -> dict[str, tuple[int, Callable[[], bool]]]:
    """Return analyses, each with its number of series and a test for an alarm."""
    normal = generator.normal

    def falls() -> bool:
        rates = 1000 * normal(1, 0.1, 120)
        state = steady_state([Interval(1.0, rate) for rate in rates], warmed_up=True)
        return bool(state and state.findings)

    def cut() -> bool:
        numbers = generator.integers(0, 2**31, 3)
        return rate_cut([probe([(2000, 150)], int(n), noise=0.1) for n in numbers]) is not None

    def edge() -> bool:
        sent, received = (SENT_MBPS * (1 + 0.005 * normal(size=SENT_MBPS.size)) for _ in "ab")
        return rate_sweep(SENT_MBPS, sent, received)["penalty_edge_mbps"] is not None

    def lossy() -> Record:
        return occurrences(5.0 * (generator.random(2000) < LOSSY))

    def missed() -> bool:
        found = lossy()
        return not found["low"] <= LOSSY <= found["high"]

    def differs(count: int, likeness: float) -> bool:
        common = 300 * np.exp(0.3 * normal(size=count))
        there, back = (common * np.exp(0.1 * resembling(generator, count, likeness)) for _ in "ab")
        return bool(paired_difference(there, back)["differs"])

    def fortnight(likeness: float) -> np.ndarray:
        values: np.ndarray = 500 * (1 + 0.05 * resembling(generator, FORTNIGHT.size, likeness))
        return values

    def daily(likeness: float) -> bool:
        return bool(periodicity(FORTNIGHT, fortnight(likeness), DAY_S)["present"])

    def foretold(likeness: float) -> bool:
        return bool(forecast(FORTNIGHT, fortnight(likeness), 6 * 3600.0)["useful"])

    found: dict[str, tuple[int, Callable[[], bool]]] = {
        "a test of a bucket that falls": (6 * SERIES, falls),
        "two levels, or a shift, in 12 tests": (
            SERIES,
            lambda: levels_between_tests(list(normal(200, 20, size=12))) is not None,
        ),
        "a cut late in three tests": (SLOW, cut),
        "a penalty edge": (SERIES, edge),
        "lossy minutes in clusters": (SERIES, lambda: bool(lossy()["clustered"])),
        "1 % of lossy minutes outside its bounds": (SERIES, missed),
        "directions differ": (SERIES, lambda: differs(30, 0.0)),
        "directions differ, neighbours alike": (SERIES, lambda: differs(1000, 0.8)),
        "a shift of level in 240 samples": (
            SERIES,
            lambda: bool(level_shifts(list(80 * np.exp(0.05 * normal(size=240))))),
        ),
    }
    for alike, likeness in (("", 0.0), (", neighbours alike", 0.7)):
        found[f"a day's period{alike}"] = SLOW, partial(daily, likeness)
        found[f"a forecast of 6 h{alike}"] = SLOW, partial(foretold, likeness)
    return found


if __name__ == "__main__":
    sys.exit(main())
