"""``relayd.open()``: from a place to a :class:`~relayd.wan.Wan`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from relayd.catalogue import load_catalogue
from relayd.settings import Settings, load_settings
from relayd.store.places import Place, place
from relayd.wan import Wan


def open(  # noqa: A001 - relayd.open() is what a user writes
    db: str | Path | None = None, *, catalogues: Sequence[str | Path] = ()
) -> Wan:
    """Open what is known of the network.

    Parameters
    ----------
    db : str or Path, optional
        A store: the path of a file, or the address of a PostgreSQL database
        (``postgresql://user@host/database``). Without it: ``RELAYD_DB``, the settings file, else
        the per-user store; where that does not exist yet, answers rest on the baseline.
    catalogues : sequence of str or Path
        Catalogue files of one's own, in addition to those of the settings.

    Raises
    ------
    StoreError
        If a store was named and can't be read.
    CatalogueError
        If a catalogue file is wrong.
    """
    settings = load_settings()
    return open_with(settings, place(db) if db else None, [Path(name) for name in catalogues])


def open_with(settings: Settings, db: Place | None, catalogues: Sequence[Path]) -> Wan:
    """Open with settings at hand; a store that is named must exist."""
    catalogue = load_catalogue((*settings.catalogues, *catalogues))
    return Wan(catalogue, db or settings.db)
