"""A question as one object: what it is called on every surface, and the function that answers it.

What a question takes is in its request class, a specification that command line, HTTP, client and
documentation are made from; see :mod:`planner.fields.specified`. What it answers is a
:class:`~planner.model.answer.Recommendation`, which has its own text. Each question stands in a
module of its own, and is found by its entry point; see :mod:`relayd.questions.registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.fields.specified import Specified
from planner.model.answer import Answer

AFTER_OURS = 1000


@dataclass(frozen=True)
class TextOption:
    """A part of an answer's text that depends on an option of the command.

    Attributes
    ----------
    keyword : str
        Of the answer's method ``text``: a flag.
    option : str
        Such as ``--pairs``.
    help : str
        Of an option of the command alone; empty where a field of the request has the option.
    given : bool
        Whether the flag is set where the option is given, or where it is not.
    """

    keyword: str
    option: str
    help: str = ""
    given: bool = True


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question.

    Attributes
    ----------
    name : str
    method : str
        Of :class:`~relayd.sources.wan.Wan` and of clients.
    path : str
        Under which the HTTP service answers it, such as ``/v1/plans``.
    command : str
        That asks it on the command line, such as ``plan`` or ``plan compare``.
    summary : str
        What an answer does: an imperative sentence without a full stop.
    request, answer : type
        A specified class; and a frozen dataclass with slots on
        :class:`~planner.model.answer.Recommendation`.
    solve : callable
        That answers a request on a network view.
    example : mapping
        A worked example, as JSON.
    schema_name : str
        Of the request in the description of the API; clients that are made from that have it.
    order : int
        Place in lists of questions; ours stand before those of other distributions.
    note : str
        A sentence on its route in the description of the API.
    most : mapping
        Key of a field to a limit of the service that is below the specification's: entries of a
        list, or a number.
    heading : str
        Help of the group of commands that its command stands in, where no other command is one.
    shown : tuple of TextOption
        Parts of the answer's text that options turn on.
    emits : bool
        Whether the answer is a plan of one transfer, which other tools can carry out.
    """

    name: str
    method: str
    path: str
    command: str
    summary: str
    request: type[Specified]
    answer: type[Answer]
    solve: Callable[[Any, Any], Answer] = field(repr=False)
    example: Mapping[str, Any] = field(compare=False, repr=False)
    schema_name: str
    order: int = AFTER_OURS
    note: str = ""
    most: Mapping[str, float] = field(default_factory=dict, compare=False)
    heading: str = ""
    shown: tuple[TextOption, ...] = ()
    emits: bool = False

    def __post_init__(self) -> None:
        """Check what surfaces need; raises a ValueError that says what is wrong."""
        if not self.path.startswith("/v1/"):
            raise ValueError(f"the path of a question begins with /v1/, and {self.path!r} does not")
        if self.answer.__dictoffset__:
            raise ValueError(
                f"{self.answer.__name__} needs @dataclass(frozen=True, slots=True), or JSON lacks "
                "the fields that it inherits"
            )
