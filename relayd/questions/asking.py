"""The methods of ``Wan`` and of clients that ask, made from the questions.

Type checkers read ``asking.pyi``, which has those of relayd's own questions.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, formatannotation
from textwrap import fill
from typing import Any

from planner.fields.specified import Field, fields_of
from relayd.questions.question import Question
from relayd.questions.registry import QUESTIONS


def signature(question: Question) -> Signature:
    """Return the signature of the method that asks a question."""
    positional = question.request.positional()

    def parameter(field: Field) -> Parameter:
        kind = (
            Parameter.POSITIONAL_OR_KEYWORD if field.name in positional else Parameter.KEYWORD_ONLY
        )
        default = Parameter.empty if field.required else field.default
        return Parameter(field.name, kind, default=default, annotation=field.accepts)

    fields = fields_of(question.request).values()
    itself = Parameter("self", Parameter.POSITIONAL_ONLY)
    asked = sorted(map(parameter, fields), key=lambda one: one.kind)
    return Signature([itself, *asked], return_annotation=question.answer)


def documentation(question: Question) -> str:
    """Return the help of the method that asks a question."""
    lines = [f"{question.summary}.", "", "Parameters", "----------"]
    for field in fields_of(question.request).values():
        named = formatannotation(field.accepts).replace("typing.", "")
        lines.append(f"{field.name} : {named}")
        example = f" For example: {field.example}." if field.example else ""
        no_effect = "Has no effect. " if field.deprecated else ""
        text = f"{no_effect}{field.help}{example}"
        lines.append(fill(text, 92, initial_indent="    ", subsequent_indent="    "))
    lines += ["", "Raises", "------", "InputError, InfeasibleError, DataError"]
    lines.append("    See :mod:`planner.model.errors`.")
    return "\n".join(lines)


def _described(question: Question, ask: Any) -> Callable[..., Any]:
    ask.__name__, ask.__qualname__ = question.method, f"Asking.{question.method}"
    ask.__doc__, ask.__signature__ = documentation(question), signature(question)
    described: Callable[..., Any] = ask
    return described


def _method(question: Question) -> Callable[..., Any]:
    def ask(self: Any, /, *values: Any, **keywords: Any) -> Any:
        return self.ask(question.request(*values, **keywords))

    return _described(question, ask)


def _coroutine(question: Question) -> Callable[..., Any]:
    async def ask(self: Any, /, *values: Any, **keywords: Any) -> Any:
        return await self.ask(question.request(*values, **keywords))

    return _described(question, ask)


class _Base:
    """Raises where a class that asks has something else by the name of a question's method."""

    def __init_subclass__(cls) -> None:
        for question in QUESTIONS:
            if cls.__module__ != __name__ and question.method in vars(cls):
                raise TypeError(f"{cls.__name__}.{question.method} asks {question.name} already")


Asking = type("Asking", (_Base,), {one.method: _method(one) for one in QUESTIONS})
AskingAsync = type("AskingAsync", (_Base,), {one.method: _coroutine(one) for one in QUESTIONS})
