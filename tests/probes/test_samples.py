"""Many samples as one array: nothing is lost, whichever way they are read."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import InputError
from planner.model.estimate import AddressKind
from probes.metrics import NAMES
from probes.samples import Sample, Samples

_NAMES = st.sampled_from(["", "a", "b", "m5.large"])
_REGIONS = st.sampled_from(["aws:us-east-1", "gcp:us-east1", "azure:eastus"])
_POSITIVE = st.floats(1e-6, 1e9)
_SAMPLES = st.lists(
    st.builds(
        Sample,
        *(_REGIONS, _REGIONS, st.sampled_from(NAMES), _POSITIVE, _POSITIVE, _NAMES),
        connections=st.none() | st.integers(1, 2**40),
        duration_s=st.none() | _POSITIVE,
        warmed_up=st.booleans(),
        src_zone=_NAMES,
        dst_zone=_NAMES,
        src_vm=_NAMES,
        dst_vm=_NAMES,
        detail=st.sampled_from(["", "{}", '{"volume_gb": 2}']),
        address=st.none() | st.sampled_from(get_args(AddressKind)),
        new_level=st.booleans(),
        intervals=st.none() | st.integers(1, 1000),
    ),
    max_size=30,
)


@given(_SAMPLES, _SAMPLES)
def test_an_array_holds_every_field_of_its_samples(
    first: list[Sample], second: list[Sample]
) -> None:
    both = Samples.concat([Samples.of(first), Samples.of(second, "token ci")])
    assert list(both) == first + second
    assert both.column("source") == [""] * len(first) + ["token ci"] * len(second)
    assert [both[at] for at in range(len(both))] == first + second
    slow = both.rows["value"] < 10
    assert list(both[slow]) == [one for one in first + second if one.value < 10]
    assert list(both[1::2]) == (first + second)[1::2]


@given(_SAMPLES)
def test_groups_have_the_samples_of_a_series_in_the_order_they_came_in(
    samples: list[Sample],
) -> None:
    expected: dict[tuple[str, str, str], list[Sample]] = {}
    for sample in samples:
        expected.setdefault(sample[:3], []).append(sample)
    found = {series: list(part) for series, part in Samples.of(samples).groups()}
    assert found == expected
    for metric in NAMES:
        of_metric = [sample for sample in samples if sample.metric == metric]
        assert list(Samples.of(samples).of_metric(metric)) == of_metric


def test_parts_stay_as_they_are_when_they_are_joined() -> None:
    """Also where their names have the same numbers, and nothing of them need be copied."""
    one = Sample("aws:a", "gcp:b", "rtt_ms", 1.0, 1e9, "ping", detail='{"n": 1}')
    parts = [Samples.of([one, one]), Samples.of([one._replace(detail='{"n": 2}'), one])]
    before = [list(part) for part in parts]
    joined = Samples.concat(parts)
    assert list(joined) == before[0] + before[1]
    assert [list(part) for part in parts] == before
    assert joined.in_order(np.arange(4)) is joined
    assert list(joined.in_order(np.array([3, 2, 1, 0]))) == list(joined)[::-1]


def test_a_metric_that_is_none_and_values_that_are_no_numbers_are_refused() -> None:
    sample = Sample("aws:a", "gcp:b", "rtt_ms", 1.0, 1e9, "ping")
    with pytest.raises(InputError, match="metric"):
        Samples.of([sample._replace(metric="rtt")])  # type: ignore[arg-type]
    text: Any = "1.5"
    for wrong in (sample._replace(value=text), sample._replace(measured_at_s=text)):
        with pytest.raises(TypeError):
            Samples.of([wrong])
    assert not len(Samples())
    assert not list(Samples.of([]).groups())
    assert np.isinf(Samples.of([sample]).rows["arrived_at_s"]).all()
