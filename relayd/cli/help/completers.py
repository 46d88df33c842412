"""What shells complete: regions, VM types, terms, and ids out of a store."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from planner.model.errors import RelaydError
from relayd.catalogue.loading import load_catalogue
from relayd.cli.options import store_location
from relayd.questions.explanations import terms as explained
from relayd.settings import load_settings
from relayd.store import Store, open_store
from relayd.store.transfers import Transfers, WantedTransfers

_MOST_IDS = 100


def regions(**_: Any) -> Iterable[str]:
    """Return ids and aliases of regions."""
    catalogue = load_catalogue()
    # Bare names too, as people type them: a shell takes a colon for the end of a word.
    bare = (name.partition(":")[2] for name in catalogue.regions)
    return [*catalogue.regions, *bare, *catalogue.aliases]


def vm_types(prefix: str, **_: Any) -> Iterable[str]:
    """Return VM types, after the place that a word may begin with."""
    where, assigned, _name = prefix.rpartition("=")
    names = (name.partition(":")[2] for name in load_catalogue().vm_types)
    return [f"{where}{assigned}{name}" for name in names]


def terms(**_: Any) -> Iterable[str]:
    """Return the terms that are explained."""
    return [term["name"] for term in explained()]


def snapshots(parsed_args: argparse.Namespace, **_: Any) -> Iterable[str]:
    """Return ids of snapshots of the store."""
    return _stored(
        parsed_args, lambda store: [row.id for row in store.snapshots.list()[:_MOST_IDS]]
    )


def transfers(parsed_args: argparse.Namespace, **_: Any) -> Iterable[str]:
    """Return ids of the newest transfers of the store."""

    def newest(store: Store) -> Sequence[str]:
        page = Transfers(store.database).page(WantedTransfers(), limit=_MOST_IDS)
        return [row.id for row in page]

    return _stored(parsed_args, newest)


def _stored(options: argparse.Namespace, listed: Callable[[Store], Sequence[str]]) -> Sequence[str]:
    """Return names out of the store that a command line means; none where it can't be read."""
    try:
        with open_store(store_location(options, load_settings()), mode="read") as store:
            return listed(store)
    except RelaydError:
        return ()
