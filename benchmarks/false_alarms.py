"""Rate of false alarms of analyses: ``python -m benchmarks.false_alarms``.

Each analysis of a report gets series that have nothing but noise, some of whose neighbours resemble
each other, and the table of docs/report.md says how many it raised an alarm on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import tests.conftest  # noqa: F401 - registers what tests' modules ask for as they load
from benchmarks.table import show
from probes.analysis.comparisons import paired_difference
from probes.analysis.falls import rate_cut
from probes.analysis.forecast import forecast
from probes.analysis.level_shift import level_shifts, levels_between_tests
from probes.analysis.patterns import DAY_S, occurrences, periodicity, strongest_period
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
    generator = np.random.default_rng(11)
    rows = []
    for name, series, alarms in cases(generator):
        found = sum(alarms() for _ in range(series))
        rows.append((name, str(series), str(found), f"{100 * found / series:.1f} %"))
        print(f"{name}: {found} of {series}", file=sys.stderr, flush=True)
    show("Alarms on series with nothing in them", ("", "series", "alarms", "share"), rows)
    return 0


def cases(generator: np.random.Generator) -> Iterator[tuple[str, int, Callable[[], bool]]]:
    """Yield analyses, each with its number of series and a test for an alarm."""

    def noisy(sent: np.ndarray) -> np.ndarray:
        noise: np.ndarray = sent * (1 + 0.005 * generator.normal(size=sent.size))
        return noise

    def falls() -> bool:
        rates = 1000 * generator.normal(1, 0.1, 120)
        state = steady_state([Interval(1.0, rate) for rate in rates], warmed_up=True)
        return bool(state and state.findings)

    def cut() -> bool:
        numbers = generator.integers(0, 2**31, 3)
        tests = [probe([(2000, 150)], int(number), noise=0.1) for number in numbers]
        return rate_cut(tests) is not None

    def lossy() -> np.ndarray:
        minutes: np.ndarray = 5.0 * (generator.random(2000) < LOSSY)
        return minutes

    def missed() -> bool:
        found = occurrences(lossy())
        return not found["low"] <= LOSSY <= found["high"]

    def differs(count: int, likeness: float) -> bool:
        common = 300 * np.exp(0.3 * generator.normal(size=count))
        there, back = (common * np.exp(0.1 * resembling(generator, count, likeness)) for _ in "ab")
        return bool(paired_difference(there, back)["differs"])

    def fortnight(likeness: float) -> np.ndarray:
        values: np.ndarray = 500 * (1 + 0.05 * resembling(generator, FORTNIGHT.size, likeness))
        return values

    def daily(likeness: float) -> bool:
        return bool(periodicity(FORTNIGHT, fortnight(likeness), DAY_S)["present"])

    def foretold(likeness: float) -> bool:
        return bool(forecast(FORTNIGHT, fortnight(likeness), 6 * 3600.0)["useful"])

    def periodic(likeness: float) -> bool:
        return bool(strongest_period(FORTNIGHT, fortnight(likeness))["present"])

    yield "a test of a bucket that falls", 6 * SERIES, falls
    yield (
        "two levels, or a shift, in 12 tests",
        SERIES,
        lambda: levels_between_tests(list(generator.normal(200, 20, size=12))) is not None,
    )
    yield "a cut late in three tests", SLOW, cut
    yield (
        "a penalty edge",
        SERIES,
        lambda: (
            rate_sweep(SENT_MBPS, *(noisy(SENT_MBPS) for _ in "ab"))["penalty_edge_mbps"]
            is not None
        ),
    )
    yield "lossy minutes in clusters", SERIES, lambda: occurrences(lossy())["clustered"]
    yield "1 % of lossy minutes outside its bounds", SERIES, missed
    yield "directions differ", SERIES, lambda: differs(30, 0.0)
    yield "directions differ, neighbours alike", SERIES, lambda: differs(1000, 0.8)
    yield (
        "a shift of level in 240 samples",
        SERIES,
        lambda: bool(level_shifts(list(80 * np.exp(0.05 * generator.normal(size=240))))),
    )
    for likeness in (0.0, 0.7):
        alike = ", neighbours alike" if likeness else ""
        yield f"a day's period{alike}", SLOW, partial(daily, likeness)
        yield f"any period{alike}", SLOW, partial(periodic, likeness)
        yield f"a forecast of 6 h{alike}", SLOW, partial(foretold, likeness)


if __name__ == "__main__":
    sys.exit(main())
