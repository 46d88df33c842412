"""An estimate of one quantity: its bounds, and from what it was made."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Literal, NamedTuple, TypeAlias, get_args

Kind: TypeAlias = Literal["measured", "inferred", "baseline"]
Bound: TypeAlias = Literal["low", "expected", "high"]
AddressKind: TypeAlias = Literal["public", "private"]
Addresses: TypeAlias = Literal["public", "private", "both"]
HeldTo: TypeAlias = Literal["vm-caps", "aggregate"]
Method: TypeAlias = Literal[
    "unknown",  # saved before methods were recorded
    "stated",  # by the caller, taken as exact
    "median-of-samples",
    # Round-trip times
    "opposite-direction",
    "same-cities",
    "backbone",
    "location-unknown",
    # Throughput of one flow
    "window-over-rtt",
    "share-of-aggregate",
    # Aggregate throughput
    "provider-pair-law",
    "shifted-law",  # by links of the same providers and class of distance
    "neighbouring-links",  # the law shifted by links between the same two parts of the world
    "vm-caps",
    "one-connection",
    # Caps and windows of VMs
    "vm-type",
    "vm-type-unknown",
    "system-default",
    "fleet-file",
    "cap-probe",
    "cap-probe-lower-bound",
    "caps-of-vm-type",
    "link-above-cap",
    "flows-into-region",
    "flows-into-vm-type",
    "link-state",  # a link that is down
]

# How much a measured link may have drifted: a random walk of 5 % in a year. On the January and
# November 2022 grids the ranks of AWS pairs correlate at 0.995, so the drift is slow.
DRIFT_PER_SQRT_YEAR = 0.05
SECONDS_PER_DAY = 86400.0
DAYS_PER_YEAR = 365.25


class Figures(NamedTuple):
    """The figures and names that an estimate was made with; None for what its method has not.

    Attributes
    ----------
    connections : int | None
        Parallel TCP connections of the samples.
    peers : int | None
        VMs at the other end of a cap probe.
    window_kind, rtt_kind : Kind | None
        What the receiver's window and the round-trip time of a flow are themselves.
    held_to : HeldTo | None
        What holds a flow below its window over its round-trip time.
    error : float | None
        Largest relative error of a law.
    between : (str, str) | None
        The providers, cities or regions that it was taken between.
    vm_type : str | None
        Id of the VM type that it was taken from.
    raised_from : Method | None
        How the cap was made that was exceeded by what a link or a probe carried.
    note : str | None
        What the catalogue says about where it has the figure from; why a link is down; or, where
        the method is unknown, the sentence that was saved.
    """

    connections: int | None = None
    peers: int | None = None
    window_kind: Kind | None = None
    rtt_kind: Kind | None = None
    held_to: HeldTo | None = None
    error: float | None = None
    between: tuple[str, str] | None = None
    vm_type: str | None = None
    raised_from: Method | None = None
    note: str | None = None


class Origin(NamedTuple):
    """From what an estimate was made.

    Attributes
    ----------
    kind : Kind
        ``measured`` on the very link or VM, ``inferred`` from other measurements, or
        ``baseline``: from models alone.
    method : Method
    samples, links : int
        How many samples it rests on, and of how many links (or VMs) these are.
    newest_s, oldest_s : float | None
        Times of the newest and the oldest of these samples, seconds since 1970 (UTC).
    address : Addresses | None
        Over which kinds of address they were measured; None where that is not known.
    figures : Figures | None
    """

    kind: Kind
    method: Method = "unknown"
    samples: int = 0
    links: int = 0
    newest_s: float | None = None
    oldest_s: float | None = None
    address: Addresses | None = None
    figures: Figures | None = None

    @property
    def basis(self) -> str:
        """What it was made from, in words."""
        template = _BASIS[self.method]
        if self.figures is None:
            return "" if "{" in template else template
        return template.format(of=self.figures)


UNKNOWN = Origin("baseline")
METHODS: frozenset[str] = frozenset(get_args(Method))
_BASIS: dict[Method, str] = {
    "unknown": "{of.note}",
    "stated": "",
    "median-of-samples": "{of.connections} connections",
    "opposite-direction": "the opposite direction",
    "same-cities": "other regions in {of.between[0]} and {of.between[1]}",
    "backbone": "backbone model",
    "location-unknown": "locations not known",
    "window-over-rtt": "receiver's window ({of.window_kind}) / RTT ({of.rtt_kind})",
    "share-of-aggregate": "a {of.connections}th of the aggregate of {of.connections} connections",
    "provider-pair-law": "{of.between[0]} to {of.between[1]} law, error up to {of.error:.0%}",
    "shifted-law": "other pairs of these providers at such distances",
    "neighbouring-links": "other pairs between the same parts of the world",
    "vm-caps": "VM caps; nothing known of the path",
    "one-connection": "one connection carries; more were not measured, and no VM type is known",
    "vm-type": "{of.note}",
    "vm-type-unknown": "no VM type known",
    "system-default": "Linux default",
    "fleet-file": "the fleet file",
    "cap-probe": "{of.peers} peers at once",
    "cap-probe-lower-bound": "the most it carried while its peers were the limit",
    "caps-of-vm-type": "caps of other {of.vm_type}",
    "link-above-cap": "what {of.between[0]} -> {of.between[1]} carried",
    "flows-into-region": "flows into this region",
    "flows-into-vm-type": "flows into other {of.vm_type}",
    "link-state": "{of.note}",
}
# The age of the samples does not widen the spread over many links, nor a bound that is open.
_AGELESS = frozenset({"shifted-law", "neighbouring-links", "cap-probe-lower-bound"})


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is believed of one quantity.

    Attributes
    ----------
    low, expected, high : float
        Ninety percent of true values should lie between low and high.
    origin : Origin
        From what it was made.
    """

    low: float
    expected: float
    high: float
    origin: Origin = UNKNOWN

    def __repr__(self) -> str:
        """Say the figure, its bounds and what it rests on."""
        samples = f", {self.samples} samples" if self.samples else ""
        return (
            f"<Estimate {self.expected:.4g} ({self.low:.4g} to {self.high:.4g}), "
            f"{self.source}{samples}>"
        )

    @property
    def source(self) -> Kind:
        """``measured`` on this link, ``inferred`` from other measurements, or ``baseline``."""
        return self.origin.kind

    @property
    def relative_width(self) -> float:
        """How far apart its bounds are, over what is expected."""
        return (self.high - self.low) / self.expected if self.expected else inf

    @property
    def samples(self) -> int:
        """How many samples of this very quantity it rests on."""
        return self.origin.samples if self.origin.kind == "measured" else 0

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate of so many times the quantity."""
        return Estimate(self.low * factor, self.expected * factor, self.high * factor, self.origin)

    @property
    def measured_at_s(self) -> float | None:
        """Time from which its bounds widen, seconds since 1970 (UTC): that of the newest sample.

        None where it rests on no samples, or age does not widen them.
        """
        origin = self.origin
        return None if origin.method in _AGELESS else origin.newest_s

    @property
    def basis(self) -> str:
        """In words, what it was made from."""
        return self.origin.basis

    def aged(self, now_s: float, since_s: float | None = None) -> Estimate:
        """Return the estimate with bounds widened for its age, in whole days.

        Bounds that were widened before, for its age at ``since_s``, are widened by the rest.
        """
        measured_at_s = self.measured_at_s
        if measured_at_s is None or self.expected <= 0:
            return self
        days = (now_s - measured_at_s) // SECONDS_PER_DAY
        if since_s is not None:
            days -= max(0.0, (since_s - measured_at_s) // SECONDS_PER_DAY)
        if days <= 0:
            return self
        drift = DRIFT_PER_SQRT_YEAR * sqrt(days / DAYS_PER_YEAR)
        below = sqrt((self.expected / self.low - 1) ** 2 + drift**2) if self.low else inf
        above = sqrt((self.high / self.expected - 1) ** 2 + drift**2)
        return Estimate(
            self.expected / (1 + below), self.expected, self.expected * (1 + above), self.origin
        )


STATED = Origin("measured", "stated")


def exactly(value: float, origin: Origin = STATED) -> Estimate:
    """Return an estimate without doubt, for a figure that the caller states."""
    return Estimate(value, value, value, origin)
