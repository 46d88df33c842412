"""What every longer question is: something that is asked of a Wan, in a worker."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from planner.model.answer import Answer
from relayd.http.models.common import Asked
from relayd.sources.wan import Wan


class QuestionModel(Asked):
    """A question whose answer takes from milliseconds to seconds."""

    @abstractmethod
    def ask(self, wan: Wan) -> Answer:
        """Return the answer.

        Raises
        ------
        RelaydError
            As the library's method does.
        """

    def said(self, *but: str) -> dict[str, Any]:
        """Return what was said, without some, as keywords of the library's method."""
        said = self.model_dump(exclude_unset=True, exclude=set(but))
        if said.get("time_value_usd_per_h") == "inf":
            said["time_value_usd_per_h"] = float("inf")
        return said
