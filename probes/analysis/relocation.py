"""Whether recreating a VM is likely to give a faster one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reference:
    """How caps of one VM type are distributed: levels in Mbit/s with their odds."""

    vm_type: str
    levels_mbps: tuple[float, ...]
    odds: tuple[float, ...]
    source: str

    @classmethod
    def from_measured(cls, vm_type: str, caps_mbps: Sequence[float], source: str) -> Reference:
        """Make a reference from caps of other VMs of the type, each as likely."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Relocation:
    """Advice on one VM.

    Attributes
    ----------
    recreate : bool
    odds : float
        That one recreation gives at least ``worth`` times the present cap.
    expected_tries : float
    expected_mbps : float
        Mean cap over the recreations that help.
    percentile : float
        Share of VMs of the type that are slower.
    text : str
    """

    recreate: bool
    odds: float
    expected_tries: float
    expected_mbps: float
    percentile: float
    text: str


def advise(
    measured_mbps: float, reference: Reference, *, worth: float = 1.2, least_odds: float = 0.25
) -> Relocation:
    """Return whether recreating a VM pays, with odds."""
    raise NotImplementedError
