"""Quantities as people write and read them."""

from __future__ import annotations

import pytest

from planner.model.errors import InputError
from planner.model.units import chance_text, enough_text, more_usd_text, parse_volume_gb, rate_text


@pytest.mark.parametrize(
    ("text", "volume_gb"),
    [("2,000 GB", 2000.0), ("1,234,567.5MB", 1234.5675), ("2_000GB", 2000.0), ("500G", 500.0)],
)
def test_digits_may_be_grouped(text: str, volume_gb: float) -> None:
    assert parse_volume_gb(text) == pytest.approx(volume_gb)


@pytest.mark.parametrize("text", ["2,00GB", "2,5TB", ",000GB", "1,0000GB"])
def test_other_commas_are_no_groups(text: str) -> None:
    with pytest.raises(InputError):
        parse_volume_gb(text)


def test_what_is_enough_is_rounded_up_to_its_words() -> None:
    assert enough_text(64_001) == "17 h 47 min (64020 s)"
    assert enough_text(60.2) == "1 min 01 s (61 s)"
    assert enough_text(64_020) == "17 h 47 min (64020 s)"
    assert enough_text(200_000) == "2.4 days (207360 s)"


def test_small_rates_small_chances_and_money_read_well() -> None:
    assert rate_text(0.00813) == "8.13 Mbit/s"
    assert rate_text(38.72) == "38.72 Gbit/s"
    assert rate_text(32.06, 39.9) == "32.06 to 39.90 Gbit/s"
    assert [chance_text(p) for p in (0.0, 0.58, 1.0)] == ["under 1%", "58%", "over 99%"]
    assert more_usd_text(-11.51) == "and saves $11.51"
    assert more_usd_text(0.001) == "at the same cost"
