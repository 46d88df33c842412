"""``relayd.open()``: from a place to a :class:`~relayd.sources.wan.Wan`, local or remote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from planner.model.errors import InputError
from planner.model.network import Network
from relayd.catalogue.loading import load_catalogue
from relayd.settings import Settings, load_settings
from relayd.sources.given import given
from relayd.sources.stored import StoredWan
from relayd.sources.wan import Wan
from relayd.store.location import SERVICE_SCHEMES, Location

Given: TypeAlias = "Network | nx.Graph | pd.DataFrame | Mapping[str, Any]"

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from relayd.client.blocking import RemoteWan
    from relayd.sources.mirror import MirroredWan


@overload
def open(  # noqa: A001
    db: Path | Given | None = None, *, catalogues: Sequence[str | Path] = ()
) -> Wan: ...
@overload
def open(  # noqa: A001
    db: str,
    *,
    catalogues: Sequence[str | Path] = (),
    token: str | None = None,
    ca: str | Path | None = None,
    mirror: Literal[False] = False,
    timeout_s: float | None = None,
) -> Wan | RemoteWan: ...
@overload
def open(  # noqa: A001
    db: str,
    *,
    token: str | None = None,
    ca: str | Path | None = None,
    mirror: Literal[True],
    timeout_s: float | None = None,
) -> MirroredWan: ...
def open(  # noqa: A001 - relayd.open() is what a user writes
    db: str | Path | Given | None = None,
    *,
    catalogues: Sequence[str | Path] = (),
    token: str | None = None,
    ca: str | Path | None = None,
    mirror: bool = False,
    timeout_s: float | None = None,
) -> Wan | RemoteWan:
    """Open a source of the network: a store, a service, or a network of one's own.

    Parameters
    ----------
    db : str, Path, Network, networkx.Graph, pandas.DataFrame or mapping, optional
        A store: the path of a file, or the address of a PostgreSQL database
        (``postgresql://user@host/database``); or the address of a service (``http://...`` or
        ``https://...``). Without it: ``RELAYD_DB``, the settings file, else the per-user store;
        where that does not exist yet, answers rest on the baseline. Of a graph: see
        :meth:`relayd.Network.from_networkx`; edges may also have no direction, or state a speed
        as the Internet Topology Zoo does. A mapping has what :meth:`relayd.Network.from_matrices`
        takes; a data frame a row for each link (``src``, ``dst`` and attributes of an edge), or one
        VM pair's Gbit/s from row to column. ``usd_per_gb`` of links and ``vm_usd_per_h`` of regions
        state prices where the catalogue has none or others; else traffic costs nothing. Plans
        take several VMs a site, each with a rate of its own: ask with ``vms=1`` where these share a
        line.
    catalogues : sequence of str or Path
        Catalogue files of one's own, in addition to those of the settings; a service has its own.
    token : str, optional
        For a service: a bearer token; by default what ``RELAYD_TOKEN`` holds, or for a service on
        this machine the token that its first start kept.
    ca : str or Path, optional
        For a service with TLS: PEM file of the authorities to trust in place of the system's, by
        default what ``RELAYD_CA`` names.
    mirror : bool
        For a service: fetch its newest snapshot once and decide in this process, looking for newer
        ones in the background.
    timeout_s : float, optional
        For a service: longest wait for one attempt at one call; 60 s unless given.

    Raises
    ------
    StoreError
        If a store was named and can't be read; :class:`relayd.ServiceError` if a service can't be
        reached.
    CatalogueError
        If a catalogue file is wrong.
    """
    if isinstance(db, str) and db.partition("://")[0] in SERVICE_SCHEMES:
        if catalogues:
            problem, remedy = (
                "are for a store, and a service was named",
                "Give them to `relayd serve`.",
            )
            raise InputError("catalogues", problem, remedy=remedy)
        from relayd.client.blocking import RemoteWan
        from relayd.client.connection import TIMEOUT_S
        from relayd.sources.mirror import MirroredWan

        limit_s = TIMEOUT_S if timeout_s is None else timeout_s
        service = RemoteWan(db, token=token, ca=ca, timeout_s=limit_s)
        return MirroredWan(service) if mirror else service
    for_service = {"token": token, "ca": ca, "mirror": mirror, "timeout_s": timeout_s is not None}
    if misplaced := [name for name, is_given in for_service.items() if is_given]:
        remedy = "Give the service's address, such as http://127.0.0.1:8080."
        raise InputError(misplaced[0], "is for a service, and a store was named", remedy=remedy)
    settings = load_settings()
    files = [Path(name) for name in catalogues]
    if db is None or isinstance(db, str | Path):
        return open_with(settings, db or None, files)
    network, catalogue = given(db, load_catalogue((*settings.catalogues, *files)))
    return Wan(catalogue, network)


def open_with(settings: Settings, db: Location | str | None, catalogues: Sequence[Path]) -> Wan:
    """Open with settings at hand; a store that is named must exist."""
    catalogue = load_catalogue((*settings.catalogues, *catalogues))
    return StoredWan(catalogue, db or settings.db, settings.fleet)


@contextmanager
def opened(wan: Wan | RemoteWan | None) -> Iterator[Wan | RemoteWan]:
    """Yield the caller's source, or else the user's store, which is closed at the end."""
    if wan is not None:
        yield wan
        return
    with closing(open()) as own:
        yield own
