"""A question of its own: which of some regions has the least carbon in its electricity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from planner.fields.kinds import Names
from planner.fields.specified import Several, Specified, field, specified
from planner.model.answer import Recommendation, identified
from planner.model.errors import InputError
from planner.model.text.blocks import answer_text
from planner.model.text.page import PLAIN, TextPage
from relayd.questions.question import Question
from relayd.questions.resolving import NetworkView

G_PER_KWH = {
    "aws:eu-north-1": 30.0,
    "aws:eu-west-1": 300.0,
    "aws:sa-east-1": 100.0,
    "aws:us-east-1": 380.0,
}
"""Grams of CO2 equivalent a kWh of the grid at a region: round figures, made up for the example."""


@specified
class CarbonRequest(Specified):
    """The regions to rank."""

    regions: Annotated[
        Several, Names("regions", "REGION", least=1, most=100), "Regions to rank."
    ] = field(example="sa", group="carbon", option="--regions", label="Regions")


@dataclass(frozen=True, slots=True)
class RankedRegion:
    """A region with the carbon intensity of its grid."""

    region: str
    g_per_kwh: float


@dataclass(frozen=True, slots=True)
class CarbonRanking(Recommendation):
    """Regions in the order of their grids' carbon intensity, the least first."""

    request: dict[str, Any]
    reason: str
    regions: tuple[RankedRegion, ...]

    def text(self, page: TextPage = PLAIN) -> str:
        """Return the text for people: the best region, and all in a table."""
        return answer_text(
            page,
            self,
            f"{self.regions[0].region} has the least carbon.",
            "",
            page.table_of(self.regions, "region | g CO2e/kWh=g_per_kwh"),
        )


def rank(wan: NetworkView, request: CarbonRequest) -> CarbonRanking:
    """Rank regions by the carbon intensity of their grids.

    Raises
    ------
    InputError
        If a name is no region, or nothing is known of its grid.
    """
    names = [wan.resolve(name, "regions").region_id for name in request.regions]
    for name in names:
        if name not in G_PER_KWH:
            known = f"Known are {', '.join(G_PER_KWH)}."
            raise InputError("regions", "has an unknown grid", value=name, remedy=known)
    ranked = tuple(
        RankedRegion(name, G_PER_KWH[name])
        for name in sorted(dict.fromkeys(names), key=G_PER_KWH.__getitem__)
    )
    best = ranked[0]
    reason = f"The grid at {best.region} emits {best.g_per_kwh:g} g CO2e a kWh."
    snapshot = wan.network_of(names).snapshot
    return identified(CarbonRanking("", snapshot, request.to_json(), reason, ranked))


CARBON = Question(
    name="carbon",
    method="rank_by_carbon",
    path="/v1/carbon",
    command="plan carbon",
    summary="Rank regions by the carbon intensity of their grids",
    request=CarbonRequest,
    answer=CarbonRanking,
    solve=rank,
    example={"regions": ["aws:us-east-1", "aws:sa-east-1"]},
    schema_name="CarbonQuestion",
)
