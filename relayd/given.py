"""A network at hand in place of a store: the same answers, with nothing left to read.

For processes and threads that share one state of knowledge, and for whoever keeps a copy of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from time import time as clock

from planner.baseline import baseline_leg, baseline_site
from planner.catalogue import Catalogue
from planner.leg_states import LegState, Pair, still_believed
from planner.network import Leg, Network
from relayd.knowledge import Knowledge
from relayd.wan import Wan


class GivenKnowledge(Knowledge):
    """Knows one network, for ever.

    Parameters
    ----------
    catalogue : Catalogue
    network : Network
        As :meth:`relayd.knowledge.Knowledge.network` returns it: bounds not yet widened for age.
    states : mapping
        Legs that are down or degraded now. Each is forgotten at the end of its validity: nobody
        may be there any more to say that the leg is back.
    """

    def __init__(
        self, catalogue: Catalogue, network: Network, states: Mapping[Pair, LegState] = {}
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

    def leg_states(self, *, anew: bool = False) -> Mapping[Pair, LegState]:  # noqa: ARG002
        """Return which legs are down or degraded."""
        if (now_s := clock()) > self._next_end_s:
            self._states = still_believed(self._states or {}, now_s)
            self._next_end_s = _next_end_s(self._states)
        return self._states or {}

    def network(
        self,
        between: tuple[str, str] | None = None,
        further: Sequence[str] = (),
    ) -> Network:
        """Return the network, with regions of the catalogue that it does not have yet."""
        network = self._network
        new = [name for name in dict.fromkeys((*(between or ()), *further))
               if name not in network.sites]  # fmt: skip
        if not new:
            return network
        sites = dict(network.sites)
        legs: dict[str, dict[str, Leg]] = {src: dict(row) for src, row in network.legs.items()}
        for name in new:
            sites[name] = baseline_site(name, self._catalogue)
            legs[name] = {}
        for name in new:
            for other in sites:
                for src, dst in ((name, other), (other, name)):
                    if src == dst or dst in legs[src]:
                        continue
                    if leg := baseline_leg(sites[src], sites[dst], self._catalogue):
                        legs[src][dst] = leg
        return Network(sites, legs, network.snapshot, verified=network.verified)


def _next_end_s(states: Mapping[Pair, LegState]) -> float:
    ends = (state.valid_until_s for state in states.values())
    return min((end_s for end_s in ends if end_s is not None), default=inf)


class GivenWan(Wan):
    """A :class:`~relayd.wan.Wan` on a network at hand."""

    def __init__(
        self, catalogue: Catalogue, network: Network, states: Mapping[Pair, LegState] = {}
    ) -> None:
        super().__init__(catalogue, None)
        self._knowledge = GivenKnowledge(catalogue, network, states)


def everything(wan: Wan) -> tuple[Network, Mapping[Pair, LegState]]:
    """Return all that a Wan knows, to be given to a :class:`GivenWan`, and close its store."""
    try:
        return wan._knowledge.network(), wan._knowledge.leg_states()
    finally:
        wan._knowledge.forget()
