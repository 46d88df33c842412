from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probes.lab.behaviours import Impairment
from probes.lab.impaired import DROPPED, PathLimit, RateLimit

gaps = st.lists(st.tuples(st.floats(0, 0.2), st.integers(60, 65_000)), min_size=1, max_size=60)


@given(gaps, st.floats(1e4, 1e8), st.floats(0, 1e6), st.floats(0.001, 1))
def test_no_interval_carries_more_than_bucket_and_rate(
    arrivals: list[tuple[float, int]], rate: float, burst: float, queue_s: float
) -> None:
    limit = RateLimit(rate, queue_s, burst)
    now, passed = 0.0, []
    for gap, size in arrivals:
        now += gap
        wait = limit.wait_s(now, size)
        assert wait == DROPPED or 0 <= wait <= queue_s
        if wait != DROPPED:
            passed.append((now + wait, size))
    times = [time for time, _ in passed]
    assert times == sorted(times)
    for first, (start, _) in enumerate(passed):
        total = 0
        for time, size in passed[first:]:
            # What left by `time` had to find tokens: the last packet alone may go over.
            assert total <= burst + rate * (time - start) * (1 + 1e-9) + 1e-3
            total += size


def test_a_path_is_cut_after_so_many_bytes_and_recovers_when_idle() -> None:
    path = PathLimit(Impairment(cut_after_bytes=10_000, cut_rate=1000.0, queue_s=10))
    assert [path.wait_s(0.0, 5000) for _ in range(2)] == [0, 0]
    assert path.wait_s(0.1, 5000) == 0  # the first under the new rate
    assert path.wait_s(0.1, 5000) == 5.0
    assert path.wait_s(60.0, 5000) == 0
    assert path.wait_s(60.0, 5000) == 0
