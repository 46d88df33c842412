"""An estimate of one quantity: its bounds and its origin."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

Addresses: TypeAlias = Literal["public", "private", "both"]
AddressKind: TypeAlias = Literal["public", "private"]
Bound: TypeAlias = Literal["low", "expected", "high"]
CutCause: TypeAlias = Literal["time", "volume", "undecided", "burst"]
HeldTo: TypeAlias = Literal["vm-caps", "flow-cap", "aggregate", "windows"]
Kind: TypeAlias = Literal["measured", "inferred", "baseline"]
Method: TypeAlias = Literal[
    "unknown",  # saved before methods were recorded
    "stated",  # by the caller, taken as exact
    "median-of-samples",
    "median-of-transfers",  # that finished
    "contradicted-sample",  # by its law, and there is no other sample
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
    "hosts-tuned",
    "windows-of-tests",  # that their tools or reporters state
    "fleet-file",
    "cap-probe",
    "cap-probe-lower-bound",
    "caps-of-vm-type",
    "link-above-cap",
    "token-bucket",  # what lasts once a burst is over
    "flows-into-region",
    "flows-into-vm-type",
    "link-state",  # a link that is down
]
WantedAddresses: TypeAlias = Literal["auto", "public", "private"]
METHODS: frozenset[str] = frozenset(get_args(Method))


BOUNDS: tuple[Bound, Bound, Bound] = ("low", "expected", "high")
ADDRESS_KINDS: tuple[AddressKind, ...] = ("public", "private")
WANTED_ADDRESSES: tuple[WantedAddresses, ...] = ("auto", "public", "private")

SECONDS_PER_DAY = 86400.0
DAYS_PER_YEAR = 365.25


class RateCut(NamedTuple):
    """A lasting fall of a link's rate during transfers.

    Attributes
    ----------
    after_s, after_gb : float
        When: seconds and volume from the beginning of a test.
    before_gbps, after_gbps : float
        Of one VM pair.
    cause : CutCause
        Which of the two makes it fall, as tests at several rates have shown; ``burst`` for a short
        beginning that is the VM's, as a token bucket gives.
    refill_gbps : float | None
        Rate at which pauses fill the bucket again, where that was measured.
    """

    after_s: float
    after_gb: float
    before_gbps: float
    after_gbps: float
    cause: CutCause
    refill_gbps: float | None = None


class Achieved(NamedTuple):
    """Counts of the transfers of a link, by how they were read.

    Attributes
    ----------
    of_path, at_least : int
        Those that are believed about the path, and those that are lower bounds.
    gbps : float
        Median of what one VM pair achieved; transfers at the same time are added up.
    contradicts : bool
        Whether several fell short of what was measured before them, and what limited them is not
        known.
    """

    of_path: int
    at_least: int
    gbps: float
    contradicts: bool = False

    def __str__(self) -> str:
        """Say how they were read, as a clause."""
        parts = {"what the path carries": self.of_path, "a lower bound": self.at_least}
        told = " and ".join(f"{count} as {what}" for what, count in parts.items() if count)
        return f"transfers at {self.gbps:.2f} Gbit/s (median) count, {told}"


class Figures(NamedTuple):
    """The figures and names that an estimate was made with; None for what its method has not.

    Attributes
    ----------
    connections, peers : int | None
        Parallel TCP connections of the samples, and VMs at the other end of a cap probe.
    window_kind, rtt_kind : Kind | None
        What the receiver's window and the round-trip time of a flow are themselves.
    held_to : HeldTo | None
        What holds a flow below its window over its round-trip time, or many below their law.
    error : float | None
        Relative error of a law, at the 5th or the 95th percentile.
    between : (str, str) | None
        The providers, cities or regions that it was taken between.
    vm_type : str | None
        Id of the VM type that it was taken from.
    raised_from : Method | None
        How the cap was made that was exceeded by what a link or a probe carried.
    note : str | None
        The catalogue's source of the figure; why a link is down; or, where the method is unknown,
        the sentence that was saved.
    reported_by : tuple of str | None
        Whose samples these are, or those of links that it was inferred from, where neither the
        own prober's are among them nor all are of imported files.
    unconfirmed : bool | None
        Whether they are a new level that contradicts earlier measurements of others.
    disputed, disputed_by : int | None, tuple of str | None
        How many samples of this quantity contradict it, and do not count, and whose those are.
    rate_cut : RateCut | None
        Where the rate falls during a transfer: the estimate is of what lasts.
    vms : int | None
        The most VMs at each end that carried it each, all at once; None where no more than one did.
    transfers : Achieved | None
        What transfers of the link achieved, in estimates of its aggregate.
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
    reported_by: tuple[str, ...] | None = None
    unconfirmed: bool | None = None
    disputed: int | None = None
    disputed_by: tuple[str, ...] | None = None
    rate_cut: RateCut | None = None
    vms: int | None = None
    transfers: Achieved | None = None

    @property
    def is_contradicted(self) -> bool:
        """Whether transfers contradict what was measured, and no test after them has settled it."""
        return bool(self.transfers and (self.unconfirmed or self.transfers.contradicts))


class Origin(NamedTuple):
    """The source of an estimate.

    Attributes
    ----------
    kind : Kind
        ``measured`` on the very link or VM, ``inferred`` from other measurements, or
        ``baseline``: from models alone.
    samples, links : int
        How many samples it rests on, and of how many links (or VMs) these are.
    newest_s, oldest_s : float | None
        Times of the newest and the oldest of these samples, seconds since 1970 (UTC).
    address : Addresses | None
        Over which kinds of address they were measured; None where that is not known.
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
        """The source of the estimate, in words."""
        template = _BASIS[self.method]
        if self.figures is None:
            return "" if "{" in template else template
        if self.method == "median-of-samples" and self.figures.connections is None:
            template = ""  # of round trips, which have none
        text = template.format(of=self.figures) + _HELD_TO.get(self.figures.held_to, "")
        return "; ".join(filter(None, [text, str(self.figures.transfers or "")]))

    @property
    def rate_cut(self) -> RateCut | None:
        """Where the rate falls during a transfer."""
        return None if self.figures is None else self.figures.rate_cut


UNKNOWN = Origin("baseline")
HELD_TO_WINDOWS = "; held to the windows of 64 connections"
_HELD_TO: dict[HeldTo | None, str] = {
    "windows": HELD_TO_WINDOWS,
    "flow-cap": "; held to the cap of one flow",
}
_BASIS: dict[Method, str] = {
    "unknown": "{of.note}",
    "stated": "",
    "median-of-samples": "{of.connections} connections",
    "median-of-transfers": "what transfers achieved",
    "contradicted-sample": "one short test far from its law: repeat it",
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
    "system-default": "hosts as they come",
    "hosts-tuned": "hosts tuned",
    "windows-of-tests": "what tests of {of.vm_type} had",
    "fleet-file": "the fleet file",
    "cap-probe": "{of.peers} peers at once",
    "cap-probe-lower-bound": "the most it carried while its peers were the limit",
    "caps-of-vm-type": "caps of other {of.vm_type}",
    "link-above-cap": "what {of.between[0]} -> {of.between[1]} carried",
    "token-bucket": "tests that ran until the VM's burst was over",
    "flows-into-region": "flows into this region",
    "flows-into-vm-type": "flows into other {of.vm_type}",
    "link-state": "{of.note}",
}
# The age of the samples does not widen the spread over many links, nor a bound that is open.
AGELESS = frozenset({"shifted-law", "neighbouring-links", "cap-probe-lower-bound"})


class Prior(NamedTuple):
    """The estimate of a quantity without its own measurements, to which these fade.

    What measurements say fades to 1/e in `memory_years`.
    """

    low: float
    expected: float
    high: float
    memory_years: float


class EstimateDrift(NamedTuple):
    """The drift of a quantity of which nothing but its own measurements is known.

    It stays within a ratio of which `spread` is the logarithm, and fades in `memory_years`.
    """

    spread: float
    memory_years: float

    def around(self, expected: Any) -> tuple[Any, Any, Any, Any]:
        """Return the prior (see :class:`Prior`) of one figure, or of an array of them."""
        low, high = expected * exp(-self.spread), expected * exp(self.spread)
        return low, expected, high, self.memory_years


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of one quantity, made from its origin.

    Ninety percent of later measurements should lie between `low` and `high`, half of them above
    what is expected. With age it fades to its prior, where that is stated.
    """

    low: float
    expected: float
    high: float
    origin: Origin = UNKNOWN
    prior: Prior | None = None

    def __repr__(self) -> str:
        """Say the figure, its bounds and what it rests on."""
        samples = f", {self.samples} samples" if self.samples else ""
        return (
            f"<Estimate {self.expected:.4g} ({self.low:.4g} to {self.high:.4g}), "
            f"{self.source}{samples}>"
        )

    def at(self, bound: Bound) -> float:
        """Return its low, expected or high figure."""
        if bound == "expected":
            return self.expected
        return self.low if bound == "low" else self.high

    @property
    def source(self) -> Kind:
        """``measured`` on this link, ``inferred`` from other measurements, or ``baseline``."""
        return self.origin.kind

    @property
    def relative_width(self) -> float:
        """The distance of its bounds, over the expected figure."""
        return (self.high - self.low) / self.expected if self.expected else inf

    @property
    def samples(self) -> int:
        """Number of samples of this very quantity that it rests on."""
        return self.origin.samples if self.origin.kind == "measured" else 0

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate of so many times the quantity."""
        prior, low, expected, high = self.prior, self.low, self.expected, self.high
        if prior is not None:
            prior = Prior(*(bound * factor for bound in prior))._replace(memory_years=prior[3])
        return Estimate(low * factor, expected * factor, high * factor, self.origin, prior)

    @property
    def measured_at_s(self) -> float | None:
        """Time from which it ages, seconds since 1970 (UTC): that of the newest sample.

        None where it rests on no samples, or their age does not matter.
        """
        origin = self.origin
        return None if origin.method in AGELESS else origin.newest_s

    @property
    def basis(self) -> str:
        """The source of the estimate, in words."""
        return self.origin.basis

    def outlived(self, now_s: float) -> bool:
        """Return whether it is older now than measurements of its kind stay valid."""
        if self.source != "measured" or self.measured_at_s is None or self.prior is None:
            return False
        days = (now_s - self.measured_at_s) / SECONDS_PER_DAY
        return days > self.prior.memory_years * DAYS_PER_YEAR

    def drift(self, now_s: float) -> float:
        """Return the drift that is possible since it was measured, in whole days.

        That is the logarithm of the ratio between its bounds if drift alone made them; 0 where
        nothing says how it fades.
        """
        if self.measured_at_s is None or self.prior is None or self.prior.low <= 0:
            return 0.0
        days = max(0.0, (now_s - self.measured_at_s) // SECONDS_PER_DAY)
        kept = exp(-days / (DAYS_PER_YEAR * self.prior.memory_years))
        return sqrt(1 - kept * kept) * log(self.prior.high / self.prior.low)

    def aged(
        self, now_s: float, since_s: float | None = None, otherwise: EstimateDrift | None = None
    ) -> Estimate:
        """Return the estimate as its age in whole days lets it stand; seconds are since 1970 (UTC).

        What was measured fades towards its prior; without one, as `otherwise` says around itself,
        else it stays. An estimate that was aged before, to ``since_s``, ages by the rest.
        """
        measured_at_s, prior = self.measured_at_s, self.prior
        if measured_at_s is None or not 0 < self.expected < inf:
            return self
        if prior is None and otherwise is not None:
            prior = Prior(*otherwise.around(self.expected))
        days = (now_s - measured_at_s) // SECONDS_PER_DAY
        if since_s is not None:
            days -= max(0.0, (since_s - measured_at_s) // SECONDS_PER_DAY)
        if prior is None or days <= 0:
            return self
        low, expected, high = map(float, faded((self.low, self.expected, self.high), prior, days))
        return Estimate(low, expected, high, self.origin, self.prior)


def faded(
    bounds: tuple[Any, Any, Any], prior: tuple[Any, Any, Any, Any], days: Any
) -> tuple[Any, Any, Any]:
    """Return the bounds (low, expected, high) now of a figure, or array, measured some days ago.

    A link's level is taken for a stationary process about its prior (:class:`Prior`) whose
    correlation falls exponentially with time (Uhlenbeck and Ornstein, 1930): what is expected fades
    towards the prior, and the bounds towards those of the prior.
    """
    *around, memory_years = prior
    with np.errstate(divide="ignore", invalid="ignore"):
        (level, below, above), (middle, least, most) = (
            (np.log(expected), np.log(np.divide(expected, low)), np.log(np.divide(high, expected)))
            for low, expected, high in (bounds, around)
        )
    kept = np.exp(-days / (DAYS_PER_YEAR * memory_years))
    gone = 1.0 - kept * kept
    expected = middle + kept * (level - middle)
    down = np.sqrt(gone * least**2 + (kept * below) ** 2)
    up = np.sqrt(gone * most**2 + (kept * above) ** 2)
    return np.exp(expected - down), np.exp(expected), np.exp(expected + up)


STATED = Origin("measured", "stated")


def exactly(value: float, origin: Origin = STATED) -> Estimate:
    """Return an estimate without doubt, for a figure that the caller states."""
    return Estimate(value, value, value, origin)
