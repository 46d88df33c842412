"""Samples, stores, tables and fleets with which many tests begin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

from planner.model.baseline.modelled_links import baseline_network
from planner.model.catalogue import Catalogue
from probes.fleet.hosts import Fleet, Host
from probes.samples import Sample
from relayd.__main__ import main
from relayd.catalogue.loading import load_catalogue
from relayd.sources.wan import Wan
from relayd.store import open_store
from relayd.store.samples.ingest import append


def catalogue_of(*regions: str) -> Catalogue:
    """Return the catalogue with few regions, so that all links of a network are soon compared."""
    whole = load_catalogue()
    return replace(whole, regions={region: whole.region(region) for region in regions})


def rate(
    src: str, dst: str, mbps: float, at_s: float, connections: int | None = 64, **more: Any
) -> Sample:
    """Return a warmed-up test with iperf3 of a minute."""
    plain = Sample(
        src, dst, "aggregate_mbps", mbps, at_s, "iperf3", connections, 60.0, warmed_up=True
    )
    return plain._replace(**more)


def ping(src: str, dst: str, rtt_ms: float, at_s: float, **more: Any) -> Sample:
    """Return a round trip."""
    return Sample(src, dst, "rtt_ms", rtt_ms, at_s, "ping")._replace(**more)


def pings(count: int, at_s: float = 1.6e9) -> list[Sample]:
    """Return so many round trips of few links, unlike those of another time."""
    return [ping("aws:a", f"gcp:{n % 9}", float(n), at_s) for n in range(count)]


def stored(db: Path, samples: Iterable[Sample]) -> Path:
    """Make a store with samples."""
    with open_store(db, mode="create") as store:
        if samples := list(samples):
            append(store, samples, "test")
    return db


def table(file: Path, *lines: str) -> Path:
    """Write the lines of a table, the header first."""
    file.write_text("\n".join(lines) + "\n")
    return file


def imported(db: Path, *lines: str, more: Iterable[str] = ()) -> Path:
    """Import a table into a store, as a user does."""
    file = table(db.with_suffix(".csv"), *lines)
    assert main(["import", "csv", str(file), "--db", str(db), *more]) == 0
    return db


def complete(regions: Iterable[str], row: str) -> list[str]:
    """Return lines of a table with the same figures, in ``row``, for each pair of regions."""
    return [f"{src},{dst},{row}" for src, dst in permutations(regions, 2)]


def modelled() -> Wan:
    """Return a source that knows the baseline alone."""
    catalogue = load_catalogue(())
    return Wan(catalogue, baseline_network(catalogue))


def unreachable(folder: Path, *regions: str) -> Fleet:
    """Return a fleet of hosts at addresses where none is."""
    known = folder / "known_hosts"
    hosts = {
        name: Host(name, name, "127.0.0.1", 1, "nobody", None, known, public_address=f"127.0.2.{n}")
        for n, name in enumerate(regions, 1)
    }
    return Fleet(hosts)


def fleet_file(file: Path, *regions: str, more: str = "") -> Path:
    """Write a fleet file with a host in each region, and more lines for each."""
    blocks = [
        f'[[host]]\nregion = "{region}"\nhost = "192.0.2.{n}"\n{more}'
        for n, region in enumerate(regions, 1)
    ]
    file.write_text("\n".join(blocks))
    return file
