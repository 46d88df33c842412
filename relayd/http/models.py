"""Makes the API's models, and defines those that several rooms use.

A model of an answer takes names and types of its fields from a domain type, and their meaning from
the section ``Attributes`` of its docstring. Other fields are written out.
"""

from __future__ import annotations

import re
from inspect import cleandoc
from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo

from planner.model.errors import InputError
from planner.model.network import Snapshot
from probes.samples import MAX_TIME_S

MOST_NAME = 200
"""Characters of a name: of a region, an alias, a rule."""
MOST_PAIRS = 1000
_ATTRIBUTE = re.compile(r"^(\w[\w, ]*) : .*\n((?: {4}.*\n?|\n)*)", re.MULTILINE)


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not hold the character U+0000: no store keeps it")
    return text


Text: TypeAlias = Annotated[str, AfterValidator(_without_nul)]
"""Of a request, and looked for or kept in the store: PostgreSQL takes no U+0000."""

Name: TypeAlias = Annotated[Text, Field(min_length=1, max_length=MOST_NAME)]


class RequestModel(BaseModel):
    """Base of requests: unknown keys are refused, not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class ResponseModel(BaseModel):
    """Base of responses; keys may be added, never renamed or removed."""

    model_config = ConfigDict(frozen=True, defer_build=True)


class Page(RequestModel):
    """Which part of a long list."""

    limit: int = Field(100, ge=1, le=1000, description="Most entries of the answer.")
    cursor: str | None = Field(
        None, max_length=MOST_NAME, description="`next_cursor` of the page before; opaque."
    )


class Period(RequestModel):
    """From when, and until when, in seconds since 1970 (UTC)."""

    since_s: float | None = Field(None, ge=0, le=MAX_TIME_S, description="Then or later.")
    until_s: float | None = Field(None, ge=0, le=MAX_TIME_S, description="Or earlier.")

    def check(self) -> None:
        """Raise an InputError if it ends before it begins."""
        if (until_s := self.until_s) is not None and until_s < (self.since_s or 0.0):
            raise InputError("until_s", "is before since_s", value=until_s, remedy="Swap the two.")


class CampaignRequest(RequestModel):
    """A request for measurements with the fleet of the service."""

    budget_usd: float = Field(gt=0, le=1e6, description="Most to spend on egress.")
    phases: list[Literal["rtt", "per-flow", "caps", "aggregate"]] | None = Field(
        None, min_length=1, max_length=4, description="Which to measure; all where left out."
    )
    pairs: list[Name] = Field(
        [], max_length=MOST_PAIRS, description="Only these, as `source>destination` of hosts."
    )
    thorough: bool = Field(False, description="All pairs, not only those that matter.")
    connections: int = Field(64, ge=1, le=128, description="Most TCP connections of a probe.")
    max_minutes: float | None = Field(None, gt=0, le=10_000, description="Begin nothing later.")
    resume: bool = Field(False, description="Go on with the last campaign, if it is unfinished.")


def model_of(
    name: str,
    /,
    *of: type | str,
    without: tuple[str, ...] = (),
    sparse: bool = False,
    base: type[BaseModel] = ResponseModel,
    **fields: Any,
) -> Any:
    """Make the model of a part of an answer.

    Parameters
    ----------
    name : str
        In the description of the API.
    *of : type or str
        A dataclass or named tuple with its fields; what it is, unless that type says it.
    without : tuple of str
        Fields of the source that are not shown.
    sparse : bool
        Whether keys are missing where they have the default of the source.
    base : type of BaseModel
        A model whose fields it has, too.
    **fields
        Further fields, or others in their place: a type, or it and a sentence or a ``Field``.
    """
    found: dict[str, Any] = {}
    source = next((one for one in of if isinstance(one, type)), None)
    about = next((one for one in of if isinstance(one, str)), "")
    defaults = getattr(source, "_field_defaults", {}) if sparse else {}
    if source is not None:
        told = _told(source)
        bounded = issubclass(base, RequestModel)
        for field, kind in get_type_hints(source, include_extras=bounded).items():
            if field not in without:
                default = defaults.get(field, ...)
                found[field] = kind, Field(default, description=told.get(field))
        about = about or " ".join(cleandoc(source.__doc__ or "").partition("\n\n")[0].split())
    for field, given in fields.items():
        kind, text = given if isinstance(given, tuple) else (given, None)
        if not isinstance(text, FieldInfo):
            text = Field(defaults.get(field, ...), description=text)
        found[field] = kind, text
    return create_model(name, __base__=base, __doc__=about or f"{name}.", **found)


def answer(name: str, about: str, /, **fields: Any) -> Any:
    """Make the model of a whole answer, which names its snapshot."""
    return model_of(name, about, snapshot=Snapshot, **fields)


def page(name: str, about: str, /, **fields: Any) -> Any:
    """Make the model of a page of a list."""
    return answer(name, about, **fields, next_cursor=(str | None, "Null on the last page."))


def many(model: Any) -> Any:
    """Return the type of a list of a model that was made."""
    return list[model]


def dict_of(model: Any) -> Any:
    """Return the type of a mapping of names to a model that was made."""
    return dict[str, model]


def attributes_as(model: type[BaseModel], source: object, **others: Any) -> dict[str, Any]:
    """Return the fields of a model: those not given are attributes of the source."""
    return {
        name: others[name] if name in others else getattr(source, name)
        for name in model.model_fields
    }


def _told(source: type) -> dict[str, str]:
    """Return the meanings of a type's fields, by its docstring."""
    _, _, section = cleandoc(source.__doc__ or "").partition("Attributes\n----------\n")
    return {
        name: " ".join(text.split()).replace("``", "`")
        for names, text in _ATTRIBUTE.findall(section + "\n")
        for name in names.split(", ")
        if text.strip()
    }
