"""What logs put before each line of a tool's output: it is left out, and its time counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.probes.importers.reading import FIXTURES, OPTIONS, patient, samples

STATED_S = OPTIONS.measured_at_s or 0.0
AT_S = 1_793_527_200.0  # 2026-11-01T10:00:00Z
TIME = "2026-11-01T10:00:00"
PREFIXES: dict[str, float] = {
    f"{TIME}.123456789Z ": AT_S + 0.123456,
    f"{TIME}.5Z stdout F ": AT_S + 0.5,
    "2026-11-01 11:00:00+0100 ": AT_S,
    f"[{TIME}Z] ": AT_S,
    "Sun Nov  1 10:00:00 2026 ": AT_S,
    "Nov  1 10:00:00 vm-a iperf3[4711]: ": STATED_S,
    "probe-1  | ": STATED_S,
}
FILES = {
    "iperf/iperf2-client.txt": "iperf",
    "iperf3/one_stream.json": "iperf3",
    "ping/macos.txt": "ping",
    "ping/iputils.txt": "ping",
}


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", FILES)
def test_a_prefix_of_each_line_changes_nothing_but_the_time(prefix: str, name: str) -> None:
    text = (FIXTURES / name).read_text()
    prefixed = "".join(prefix + line for line in text.splitlines(keepends=True))
    bare = samples(FILES[name], text)
    found = samples(FILES[name], prefixed)
    assert bare
    has_time = bare[0].measured_at_s != STATED_S
    at_s = bare[0].measured_at_s if has_time else PREFIXES[prefix]
    assert [one._replace(measured_at_s=at_s) for one in bare] == found


@given(st.sampled_from([*PREFIXES]), st.lists(st.booleans(), min_size=40, max_size=40))
@patient
def test_lines_without_the_prefix_stay_as_they_are(prefix: str, has_prefix: list[bool]) -> None:
    lines = (FIXTURES / "ping/macos.txt").read_text().splitlines(keepends=True)
    mixed = "".join(
        (prefix if has or number == 0 else "") + line
        for number, (line, has) in enumerate(zip(lines, has_prefix, strict=False))
    )
    cut = "".join(lines[: len(has_prefix)])
    values = [(one.metric, one.value) for one in samples("ping", cut)]
    assert [(one.metric, one.value) for one in samples("ping", mixed)] == values
