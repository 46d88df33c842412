"""A network at hand in place of a store: the same answers, with nothing left to read.

For processes and threads that share one state of knowledge, and for whoever keeps a copy of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from time import time as clock

from planner.model.baseline import baseline_link, baseline_site
from planner.model.catalogue import Catalogue
from planner.model.link_states import LinkState, Pair, still_believed
from planner.model.network import Link, Network
from relayd.sources.stored import Knowledge
from relayd.sources.wan import Wan


class GivenKnowledge(Knowledge):
    """Knows one network, for ever.

    Parameters
    ----------
    catalogue : Catalogue
    network : Network
        As :meth:`relayd.sources.stored.Knowledge.network` returns it: bounds not yet widened for
        age.
    states : mapping
        Links that are down or degraded now. Each is forgotten at the end of its validity: nobody
        may be there any more to say that the link is back.
    """

    def __init__(
        self, catalogue: Catalogue, network: Network, states: Mapping[Pair, LinkState] = {}
    ) -> None:
        super().__init__(catalogue, None)
        self._network = network
        self._states = states
        self._next_end_s = _next_end_s(states)
        # As if it had been read: nothing is looked for in any store.
        self._snapshot = network.snapshot
        self._sites = network.sites

    def forget(self) -> None:
        """Do nothing: there is nothing newer."""

    def link_states(self, *, anew: bool = False) -> Mapping[Pair, LinkState]:  # noqa: ARG002
        """Return which links are down or degraded."""
        if (now_s := clock()) > self._next_end_s:
            self._states = still_believed(self._states or {}, now_s)
            self._next_end_s = _next_end_s(self._states)
        return self._states or {}

    def network(
        self, between: tuple[str, str] | None = None, further: Sequence[str] = ()
    ) -> Network:
        """Return the network, with regions of the catalogue that it does not have yet."""
        network = self._network
        new = [
            name
            for name in dict.fromkeys((*(between or ()), *further))
            if name not in network.sites
        ]
        if not new:
            return network
        sites = dict(network.sites)
        links: dict[str, dict[str, Link]] = {src: dict(row) for src, row in network.links.items()}
        for name in new:
            sites[name] = baseline_site(name, self._catalogue)
            links[name] = {}
        for name in new:
            for other in sites:
                for src, dst in ((name, other), (other, name)):
                    if src == dst or dst in links[src]:
                        continue
                    if link := baseline_link(sites[src], sites[dst], self._catalogue):
                        links[src][dst] = link
        return Network(sites, links, network.snapshot, verified=network.verified)


def _next_end_s(states: Mapping[Pair, LinkState]) -> float:
    ends = (state.valid_until_s for state in states.values())
    return min((end_s for end_s in ends if end_s is not None), default=inf)


class GivenWan(Wan):
    """A :class:`~relayd.sources.wan.Wan` on a network at hand."""

    def __init__(
        self, catalogue: Catalogue, network: Network, states: Mapping[Pair, LinkState] = {}
    ) -> None:
        super().__init__(catalogue, None)
        self._knowledge = GivenKnowledge(catalogue, network, states)


def everything(wan: Wan) -> tuple[Network, Mapping[Pair, LinkState]]:
    """Return all that a Wan knows, to be given to a :class:`GivenWan`, and close its store."""
    try:
        return wan._knowledge.network(), wan._knowledge.link_states()
    finally:
        wan._knowledge.forget()
