"""Kinds of numbers with units: a number is in the field's unit, a text says its unit."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from typing import Any, ClassVar

from planner.fields.kinds import Kind
from planner.model.errors import InputError
from planner.model.units import (
    parse_duration_s,
    parse_money_usd,
    parse_rate_gbps,
    parse_time_value_usd_per_h,
    parse_volume_gb,
)

MOST_VOLUME_GB = 1e9
"""An exabyte: more is a slip of the unit."""
MOST_FIGURE = 1e12
"""Far beyond what is sensible; keeps products of figures finite."""
LEAST_FIGURE = 1e-9
"""As small as a figure above 0 may be."""


class Quantity(Kind[float]):
    """A number with a unit: a number is in the field's unit, a text says its unit.

    Parameters
    ----------
    least, most : float
        Bounds, both allowed.
    infinite : bool
        Whether infinity is allowed, too, written ``inf``.
    """

    name = "number"
    unit: ClassVar[str] = ""
    units: ClassVar[str] = ""
    accepts = float | str

    def __init__(
        self, least: float = 0.0, most: float = MOST_FIGURE, *, infinite: bool = False
    ) -> None:
        self.least, self.most, self.infinite = least, most, infinite

    @staticmethod
    def parse(text: str, field: str) -> float:
        """Read a number with its unit."""
        try:
            return float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            raise InputError(field, "is not a number", value=text) from None

    def read(self, value: Any, field: str) -> float:
        """Return a number; a text may leave the unit out, because the field's name has it."""
        if type(value) is float:
            number = value
        elif isinstance(value, str):
            try:
                number = float(value)
            except ValueError:
                number = self.parse(value, field)
        elif isinstance(value, bool):
            raise InputError(field, "must be a number", value=value)
        else:
            try:
                number = float(value)
            except (TypeError, ValueError, OverflowError):
                raise InputError(field, "must be a number", value=value) from None
        if self.least <= number <= self.most or (self.infinite and number == inf):
            return number
        raise self._out_of_bounds(number, value, field)

    def read_words(self, words: Sequence[str], field: str) -> float:
        """Return a number from a word that says its unit."""
        return self.read(self.parse(words[-1], field), field)

    def _out_of_bounds(self, number: float, value: object, field: str) -> InputError:
        unit = f" {self.unit}" if self.unit else ""
        if not isfinite(number):
            return InputError(field, "must be a finite number", value=value)
        if number > self.most:
            remedy = "Check the unit." if self.unit else None
            return InputError(
                field, f"must be at most {self.most:g}{unit}", value=value, remedy=remedy
            )
        above = self.least == LEAST_FIGURE
        bound = "above 0" if above else f"{self.least:g} or more"
        return InputError(field, f"must be {bound}", value=value)

    def to_json(self, value: float) -> float | str:
        """Return the number; infinity, which JSON lacks, as a word."""
        return "inf" if value == inf else value

    def text(self, value: float) -> str:
        """Return a number with its unit."""
        return "inf" if value == inf else f"{value:g}{self.unit}"

    def schema(self) -> dict[str, Any]:
        """Return the schema of a number, or of a text that has it and its unit."""
        number: dict[str, Any] = {"type": "number", "minimum": self.least, "maximum": self.most}
        text = {"type": "string", "pattern": rf"^\d{{1,9}}(\.\d{{1,9}})? ?({self.units})$"}
        return {
            "anyOf": [
                number,
                text,
                *([{"type": "string", "const": "inf"}] if self.infinite else []),
            ]
        }

    def described(self) -> dict[str, Any]:
        """Return unit and bounds."""
        return {
            "unit": self.unit,
            "minimum": self.least,
            "maximum": self.most,
            "infinite": self.infinite,
        }


class Volume(Quantity):
    """A volume in GB."""

    name, unit, metavar = "volume", "GB", "SIZE"
    units = "MB|GB|TB|MiB|GiB|TiB|M|G|T"
    parse = staticmethod(parse_volume_gb)

    def __init__(self, least: float = LEAST_FIGURE, most: float = MOST_VOLUME_GB) -> None:
        super().__init__(least, most)


class Duration(Quantity):
    """A time in seconds."""

    name, unit, metavar = "duration", "s", "TIME"
    units = "ms|s|min|h|d"
    parse = staticmethod(parse_duration_s)


class Money(Quantity):
    """An amount in USD."""

    name, unit, metavar = "money", "USD", "USD"
    units = "usd|USD"
    parse = staticmethod(parse_money_usd)


class MoneyPerHour(Quantity):
    """What an hour is worth in USD."""

    name, unit, metavar = "money_per_hour", "USD/h", "USD/H"
    units = "usd/h|USD/h"
    parse = staticmethod(parse_time_value_usd_per_h)


class Rate(Quantity):
    """A rate in Gbit/s."""

    name, unit, metavar = "rate", "Gbit/s", "RATE"
    units = "mbps|gbps|tbps|Mbit/s|Gbit/s|Tbit/s"
    parse = staticmethod(parse_rate_gbps)


class Proportion(Quantity):
    """A share of a whole, or a ratio: 0.1 or 10%."""

    name, metavar = "share", "SHARE"
    units = "%"


class Number(Quantity):
    """A number without a unit."""

    metavar = "N"
    units = "%"
