"""Loads the catalogue: the built-in tables, imported prices on top, then a user's files.

Reading TOML and checking it takes over 100 ms, so the checked result is kept as JSON in the user's
cache folder, under the digest of the files and the version of relayd that it was made with. The
cache only saves time: when it can't be read or written, relayd reads the files instead.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from hashlib import blake2b
from math import inf
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import orjson
from platformdirs import user_cache_dir

from planner.model.catalogue import Catalogue, EgressPrice, Fee, Pool, Region, Tier, VmType
from planner.model.quotas.vcpus import VcpuQuota
from relayd.catalogue.files import CatalogueFile, files_in_force
from relayd.version import __version__

# Part of the digest: raise it when the same files have come to mean something else.
SCHEMA_VERSION = 10
_CACHES_KEPT = 8


def load_catalogue(
    user_files: Sequence[Path] = (), overlays: Sequence[Path] | None = None
) -> Catalogue:
    """Load the built-in catalogue, extended and overridden by imports and by a user's files.

    `user_files` are TOML (``docs/catalogue.md`` describes them); `overlays` are what ``relayd
    data catalogue`` imported, the oldest first, and by default all in force. The digest is the same
    wherever the same files lie.

    Raises CatalogueError if a file can't be read, is not TOML, breaks a rule (names the entry,
    field, value and remedy), or if two of the user's files contradict each other.
    """
    files = files_in_force(user_files, overlays)
    digest = _digest(files)
    folder = _cache_folder()
    # What another version of the rules found valid may not be so by these.
    cache = folder and folder / f"catalogue-{digest}-{__version__}.json"
    if cache is not None:
        with suppress(OSError, ValueError, TypeError, LookupError, AttributeError):
            checksum, _, payload = cache.read_bytes().partition(b"\n")
            if checksum == _checksum(payload):
                return catalogue_of(orjson.loads(payload), digest)
    from relayd.catalogue.merging import merged  # pydantic: only where the cache does not serve

    catalogue = merged(files, digest)
    if cache is not None:
        payload = orjson.dumps(content_of(catalogue))
        with suppress(OSError):
            cache.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            older = sorted(cache.parent.glob("catalogue-*"), key=lambda path: path.stat().st_mtime)
            for stale in older[: 1 - _CACHES_KEPT]:
                stale.unlink(missing_ok=True)
            # Renamed into place: another process that loads now sees all of it or nothing.
            with NamedTemporaryFile(dir=cache.parent, delete=False) as file:
                file.write(_checksum(payload) + b"\n" + payload)
            Path(file.name).replace(cache)
    return catalogue


def _digest(files: Sequence[CatalogueFile]) -> str:
    digest = blake2b(f"relayd catalogue {SCHEMA_VERSION}".encode(), digest_size=16)
    for file in files:
        # The name is told apart from its folder: it ends up in the catalogue as a source.
        name = Path(file.name).name
        digest.update(f"\n{name!r} {file.layer} {len(file.content)}\n".encode())
        digest.update(file.content)
    return digest.hexdigest()


# --- from plain values to the catalogue -------------------------------------------------------


def catalogue_of(content: Mapping[str, Any], digest: str) -> Catalogue:
    """Make a catalogue of plain values, the inverse of :func:`content_of`."""
    prices = (
        EgressPrice(
            name,
            tuple(sources),
            tuple(destinations),
            tuple(Tier(usd, inf if end is None else end) for usd, end in tiers),
            *of,
        )
        for name, sources, destinations, tiers, *of in content["egress"]
    )
    return Catalogue(
        regions={row[0]: Region(*row) for row in content["regions"]},
        aliases={alias: tuple(members) for alias, members in content["aliases"].items()},
        vm_types={row[0]: VmType(*row) for row in content["vm_types"]},
        default_vm_types=content["default_vm_types"],
        egress_prices=tuple(prices),
        digest=digest,
        vm_price_ratios=content["vm_price_ratios"],
        vm_prices=content.get("vm_prices", {}),
        discounts=content.get("discounts", {}),
        link_prices=content.get("link_prices", {}),
        # A service of an older version knows of none.
        vcpu_quotas=tuple(
            VcpuQuota(region, family, vcpus, used, tuple(types), *of)
            for region, family, vcpus, used, types, *of in content.get("vcpu_quotas", ())
        ),
        pools={region: Pool(*of) for region, of in content.get("pools", {}).items()},
        fees=tuple(
            Fee(name, tuple(at), tuple(sources), tuple(destinations), *of)
            for name, at, sources, destinations, *of in content.get("fees", ())
        ),
    )


def content_of(catalogue: Catalogue) -> dict[str, Any]:
    """Return a catalogue as plain values that another process can read."""
    egress = [list(astuple(price)[:-1]) for price in catalogue.egress_prices]
    for row in egress:
        row[3] = [(usd, None if end == inf else end) for usd, end in row[3]]
    return {
        "regions": [astuple(region) for region in catalogue.regions.values()],
        "aliases": catalogue.aliases,
        "vm_types": [astuple(vm_type) for vm_type in catalogue.vm_types.values()],
        "default_vm_types": catalogue.default_vm_types,
        "vm_price_ratios": catalogue.vm_price_ratios,
        "vm_prices": catalogue.vm_prices,
        "discounts": catalogue.discounts,
        "link_prices": catalogue.link_prices,
        "egress": egress,
        "vcpu_quotas": [[*quota] for quota in catalogue.vcpu_quotas],
        "pools": {region: [*pool] for region, pool in catalogue.pools.items()},
        "fees": [astuple(fee) for fee in catalogue.fees],
    }


# --- cache ------------------------------------------------------------------------------------


def _cache_folder() -> Path | None:
    if chosen := os.environ.get("RELAYD_CACHE_DIR"):
        return Path(chosen)
    try:
        return Path(user_cache_dir("relayd", appauthor=False))
    except (OSError, RuntimeError):
        return None


def _checksum(payload: bytes) -> bytes:
    return blake2b(payload, digest_size=16).hexdigest().encode()
