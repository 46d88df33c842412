"""Direct, relayed or split: the recommendation for one transfer.

A relay is recommended where that has the least expected regret at the margin and the attitude to
risk (:mod:`planner.transfer.comparison`), in the objective's own terms: time, cost, or
cost plus the value of time; or where the direct path cannot meet the request's limits at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from planner.model.errors import InfeasibleError, no_path
from planner.solvers.joint import Gain
from planner.transfer.comparison import RELAY_PROCESSING_MS
from planner.transfer.infeasibility import why_infeasible
from planner.transfer.option_search import OptionSearch
from planner.transfer.options import Option
from planner.transfer.problem import TransferProblem, quotas_may_bind
from planner.transfer.request import TransferRequest

# Of round-trip time: how much must be saved before a longer and more fragile path is worth it.
LEAST_LATENCY_GAIN_MS = 10.0


class Chosen(NamedTuple):
    """What was decided.

    Attributes
    ----------
    chosen : Option
    direct : Option | None
        The best of the direct path; None if it can't meet the request's limits.
    optimum : Option
        What the optimiser preferred on expected figures, chosen or not.
    gain : Gain | None
        Of the optimum over direct, in the objective's terms; None if either is missing.
    """

    chosen: Option
    direct: Option | None
    optimum: Option
    gain: Gain | None


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, and everything that explains it.

    Attributes
    ----------
    chosen, direct, optimum, gain
        See :class:`Chosen`.
    best_relay : Option | None
        The best single relay; None if none can meet the request's limits.
    alternatives : list of Option
        Further single relays, best first.
    fastest_direct : Option | None
        What the direct path gives at most, whatever the limits.
    """

    request: TransferRequest
    transfer: TransferProblem
    chosen: Option
    direct: Option | None
    optimum: Option
    gain: Gain | None
    best_relay: Option | None
    alternatives: list[Option]
    fastest_direct: Option | None


class Decider(OptionSearch):
    """Decides one request on one network; takes what :class:`.OptionSearch` takes."""

    def decide(self) -> Decision:
        """Return the decision.

        Raises
        ------
        InfeasibleError, DataError
            As :meth:`required_choice` does.
        """
        return self.explained(self.required_choice())

    def required_choice(self) -> Chosen:
        """Return what is decided.

        Raises
        ------
        InfeasibleError
            If no plan meets the limits.
        DataError
            If nothing is known of any path.
        """
        transfer = self.transfer
        if transfer.direct is None and not transfer.relays:
            if state := self.network.states.get((self.request.src, self.request.dst)):
                raise InfeasibleError(
                    f"the direct link {state}, and no relay is permitted whose links both carry "
                    "anything",
                    "Permit more relays, or wait until it is back.",
                )
            if quotas_may_bind(self.request, self.network):
                raise InfeasibleError(
                    "nothing is known of the direct path, and vCPU quotas leave no VM where a "
                    "relay is known",
                    "Measure the direct path.",
                )
            raise no_path(self.request.src, self.request.dst)
        choice = self.choice
        if choice is None:
            most = [transfer.src.quota, transfer.dst.quota]
            most += [relay.quota for relay in transfer.relays]
            raise why_infeasible(
                self.request,
                max(most),
                self._optimum_of,
                more_vms=not quotas_may_bind(self.request, self.network),
            )
        return choice

    @cached_property
    def choice(self) -> Chosen | None:
        """What is decided; None if no plan meets the limits."""
        direct = self.direct
        if self.request.objective == "latency":
            return self._least_latency(direct)
        if direct and self.no_relay_pays(direct.value_usd):
            return Chosen(direct, direct, direct, None)
        optimum = self.optimum(direct, self.first_ranked() or next(iter(self.single_relays), None))
        if optimum is None:
            return None
        gain = None
        chosen = optimum
        if direct and optimum is not direct:
            gain = self.comparison.gain(optimum, direct)
            chosen = optimum if gain.worth else direct
        return Chosen(chosen, direct, optimum, gain)

    def explained(self, choice: Chosen) -> Decision:
        """Return what was decided with what else there is: single relays, and the direct path."""
        listed = [*self.single_relays, *self.further_relays()][: self.candidates]
        chosen, direct, optimum, gain = choice
        return Decision(
            self.request,
            self.transfer,
            chosen,
            direct,
            optimum,
            gain,
            listed[0] if listed else None,
            listed[1:],
            direct or self.fastest_direct(),
        )

    def _least_latency(self, direct: Option | None) -> Chosen | None:
        """Decide by round-trip time: a relay must gain both relatively and absolutely."""
        options = self.single_relays
        if direct is None and not options:
            return None
        optimum = chosen = direct or options[0]
        gain = None
        if direct and options:
            (relay,) = options[0].relays
            saved_ms = self.path_rtt_ms(None) - self.path_rtt_ms(relay) - RELAY_PROCESSING_MS
            if saved_ms > 0:
                optimum = options[0]
                gain = self.comparison.gain(optimum, direct)
                if gain.worth and saved_ms >= LEAST_LATENCY_GAIN_MS:
                    chosen = optimum
        return Chosen(chosen, direct, optimum, gain)

    def _optimum_of(self, request: TransferRequest) -> Option | None:
        """Return the best plan that another request allows, whatever its bounds; None if none."""
        other = self.asking(request)
        return other.optimum(other.direct, other.first_ranked())
