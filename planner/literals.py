"""Types of fields that have one of a few values (`typing.Literal`).

They are apart from what they describe because `Literal` needs `typing`, which takes long to
load: see :mod:`planner.hints`. Other modules import them from where they are used.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

RelaysOfMany: TypeAlias = Literal["any", "none"]
Kind: TypeAlias = Literal["measured", "inferred", "baseline"]
Bound: TypeAlias = Literal["low", "expected", "high"]
AddressKind: TypeAlias = Literal["public", "private"]
Addresses: TypeAlias = Literal["public", "private", "both"]
WantedAddresses: TypeAlias = Literal["auto", "public", "private"]
HeldTo: TypeAlias = Literal["vm-caps", "aggregate"]
Method: TypeAlias = Literal[
    "unknown",  # saved before methods were recorded
    "stated",  # by the caller, taken as exact
    "median-of-samples",
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
CutCause: TypeAlias = Literal["time", "volume", "undecided", "burst"]
LimitedBy: TypeAlias = Literal["vm", "window", "path", "unknown"]
LinkFigure: TypeAlias = Literal["rtt_ms", "per_flow_mbps", "aggregate_gbps"]
WhyNewer: TypeAlias = Literal["none", "begun", "failed"]
Risk: TypeAlias = Literal["averse", "neutral", "bold"]
Verdict: TypeAlias = Literal["direct", "relay", "split"]
Objective: TypeAlias = Literal["value", "time", "cost", "latency"]
METHODS: frozenset[str] = frozenset(get_args(Method))
