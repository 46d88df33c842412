"""Reads open measurements, and splits them into earlier knowledge and later truth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from statistics import median

from benchmarks.decisions.planners import DecisionTask, Pair
from planner.model.catalogue import Catalogue
from planner.model.errors import DataError, FormatError, InputError
from planner.model.network import Network, Snapshot
from planner.model.pricing import CataloguePrices
from planner.model.units import MBPS_PER_GBPS
from planner.transfer.request import TransferRequest
from probes.estimation import Estimator
from probes.importers import HEAD_BYTES, ImportOptions, identified, read
from probes.samples import Sample, Samples
from tests.slow_start import bundle_share_of_steady

KNOWN_SHARES = {"tenth": 0.1, "quarter": 0.25, "half": 0.5}
"""Of a survey's links: those that planners are told of. They decide all others."""
LATER = "later"
"""Planners are told of one survey whole, and judged by a later one."""
FEWEST_TRANSFERS = 30
JANUARY_2022_S = 1_642_204_800.0
"""15 January 2022: when about Skyplane's first survey was; its file has no times."""
NOVEMBER_2022_S = 1_669_593_600.0
"""28 November 2022: when its second one was, by the names of its logs."""


@dataclass(frozen=True, slots=True)
class Survey:
    """Measurements of the links among some regions: ``aggregate_mbps`` and ``rtt_ms``."""

    throughput: list[Sample]
    rtt: list[Sample]

    @property
    def regions(self) -> frozenset[str]:
        """Those at either end of a throughput sample."""
        return frozenset(end for sample in self.throughput for end in (sample.src, sample.dst))


@dataclass(frozen=True, slots=True)
class Split:
    """The figures that planners are told, and those that they are judged by."""

    task: DecisionTask
    truth_gbps: Mapping[Pair, float]  # source and destination to the steady rate that was measured


def read_survey(paths: Sequence[Path], measured_at_s: float) -> Survey:
    """Read files of Skyplane's profiler, or of relayd's CSV format.

    Parameters
    ----------
    paths : sequence of Path
    measured_at_s : float
        For files that carry no times, seconds since 1970 (UTC).

    Raises
    ------
    InputError, FormatError, DataError
        If a file can't be read, is of no such format, or none has throughput between regions.
    """
    throughput, rtt = [], []
    for path in paths:
        options = ImportOptions(name=path.name, measured_at_s=measured_at_s)
        with path.open("rb") as file:
            found = identified(file.read(HEAD_BYTES), path.name).importer.name
            if found not in {"skyplane-throughput", "skyplane-latency", "csv"}:
                raise FormatError(
                    path.name,
                    "is neither a file of Skyplane's profiler nor CSV of measurements",
                    remedy="Fetch profiles/throughput.csv of the repository "
                    "skyplane-project/skyplane, or write src, dst, aggregate_mbps, connections "
                    "and duration_s.",
                )
            file.seek(0)
            for row in read(found, file, options):
                if isinstance(row, Sample) and row.metric == "aggregate_mbps":
                    throughput.append(row)
                elif isinstance(row, Sample) and row.metric == "rtt_ms":
                    rtt.append(row)
    if not throughput:
        names = ", ".join(path.name for path in paths)
        raise DataError(f"{names}: no throughput of many connections between two regions.")
    return Survey(throughput, rtt)


def known_before(pair: Pair, share: float) -> bool:
    """Return whether planners are told of a link.

    Its name decides, so that every split is alike, and a larger share only adds links.
    """
    number = int.from_bytes(blake2b(">".join(pair).encode(), digest_size=8).digest())
    return number < share * 2**64


def splits(
    survey: Survey, later: Survey | None, catalogue: Catalogue, like: TransferRequest
) -> list[Split]:
    """Return the splits that surveys allow: three of the first, and one for the later one.

    Parameters
    ----------
    survey : Survey
    later : Survey or None
    catalogue : Catalogue
    like : TransferRequest
        Every transfer, but for its ends.

    Raises
    ------
    InputError
        If transfers have fewer connections than the tests had.
    DataError
        If there are too few links to judge by.
    """
    throughput = survey.throughput + (later.throughput if later else [])
    most = max(sample.connections or 0 for sample in throughput)
    if most > like.connections:
        raise InputError(
            "connections",
            f"is fewer than the {most} that the files were measured with",
            value=like.connections,
        )
    rtts = survey.rtt + (later.rtt if later else [])
    whole = _estimated(survey.throughput, rtts, catalogue)
    truth = steady_gbps(survey.throughput, whole)
    found = []
    for name, share in KNOWN_SHARES.items():
        told = {pair: gbps for pair, gbps in truth.items() if known_before(pair, share)}
        samples = [s for s in survey.throughput if known_before((s.src, s.dst), share)]
        network = _estimated(samples, rtts, catalogue)
        found.append(_split(name, network, truth, told, set(told), catalogue, like))
    if later:
        aged = whole.with_(aged_to_s=max(s.measured_at_s for s in later.throughput))
        after = {
            pair: gbps
            for pair, gbps in steady_gbps(later.throughput, whole).items()
            if survey.regions.issuperset(pair)
        }
        found.append(_split(LATER, aged, after, truth, set(), catalogue, like))
    return found


def _split(
    name: str,
    network: Network,
    truth_gbps: Mapping[Pair, float],
    measured_gbps: Mapping[Pair, float],
    decided: set[Pair],
    catalogue: Catalogue,
    like: TransferRequest,
) -> Split:
    """Return a split whose network has the links of its truth and of known price alone."""
    prices = CataloguePrices(catalogue, network)

    def is_open(pair: Pair) -> bool:
        try:
            prices.egress_usd_per_gb(*pair, like.volume_gb)
        except DataError:
            return False
        return pair in truth_gbps

    open_links = {
        src: {dst: link for dst, link in row.items() if is_open((src, dst))}
        for src, row in network.usual.items()
    }
    regions = {end for src, row in open_links.items() for end in (src, *row) if row}
    network = network.with_(links=open_links, others={}).with_(restricted_to=regions)
    transfers = tuple(
        replace(like, src=link.src, dst=link.dst)
        for link in network
        if (link.src, link.dst) not in decided
    )
    if len(transfers) < FEWEST_TRANSFERS:
        raise DataError(
            f"{FEWEST_TRANSFERS} transfers to decide are needed in the split `{name}`, and there "
            f"are {len(transfers)}: too few links between regions of known prices were measured."
        )
    task = DecisionTask(name, network, measured_gbps, prices, transfers)
    return Split(task, {pair: gbps for pair, gbps in truth_gbps.items() if is_open(pair)})


def steady_gbps(samples: Sequence[Sample], network: Network) -> dict[Pair, float]:
    """Return the median of each link's tests, without what slow start cost them.

    Parameters
    ----------
    samples : sequence of Sample
        ``aggregate_mbps``.
    network : Network
        For round-trip times; links that it lacks are left out.
    """
    found: dict[Pair, list[float]] = defaultdict(list)
    for sample in samples:
        link = network.usual.get(sample.src, {}).get(sample.dst)
        if link is None:
            continue
        share = 1.0
        if not sample.warmed_up and sample.duration_s:
            share = bundle_share_of_steady(link.rtt_ms.expected, sample.duration_s)
        found[sample.src, sample.dst].append(sample.value / MBPS_PER_GBPS / share)
    return {pair: median(values) for pair, values in found.items()}


def _estimated(
    throughput: Sequence[Sample], rtt: Sequence[Sample], catalogue: Catalogue
) -> Network:
    """Return the network that relayd's estimator makes from samples."""
    samples = Samples.of([*throughput, *rtt])
    return Estimator(samples, catalogue).network(Snapshot("", "", ""))
