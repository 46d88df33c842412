"""Explains the words of answers and the options of questions, from glossary and fields."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from typing import Any, TypeAlias

from planner.fields.specified import fields_of
from planner.model.errors import InputError
from relayd.catalogue.files import built_in_folder
from relayd.questions.registry import QUESTIONS

FILE = "glossary.toml"

Explanation: TypeAlias = dict[str, Any]
"""``name``, ``text``, the ``commands`` that have the option, and the ``page`` of the docs."""


def terms() -> list[Explanation]:
    """Return the terms of the glossary."""
    return list({entry["name"]: entry for entry in _terms().values()}.values())


def explanation(word: str) -> Explanation:
    """Explain a term, a field or an option, however it is written.

    Raises InputError if it is not explained, with what was probably meant.
    """
    known = {**_fields(), **_terms()}
    entry = known.get(_key(word))
    if entry is None:
        near = dict.fromkeys(known[key]["name"] for key in get_close_matches(_key(word), known, 3))
        meant = f"Did you mean {' or '.join(near)}? " if near else ""
        remedy = f"{meant}`relayd help` lists the terms."
        raise InputError("term", "is not explained here", value=word, remedy=remedy)
    return entry


def _terms() -> dict[str, Explanation]:
    content = tomllib.loads((built_in_folder() / FILE).read_text(encoding="utf-8"))
    found: dict[str, Explanation] = {}
    for term in content["term"]:
        entry = {"name": term["name"], "text": term["text"], "commands": [], "page": term["page"]}
        for name in (term["name"], *term.get("also", ())):
            found[_key(name)] = entry
    return found


def _fields() -> dict[str, Explanation]:
    """Return the fields of all questions, by their names and by their options."""
    found: dict[str, Explanation] = {}
    for question in QUESTIONS:
        for field in fields_of(question.request).values():
            if not (field.option and field.help):
                continue
            name = field.option if field.option.startswith("--") else field.name
            new = {"name": name, "text": _sentence(field.help), "commands": [], "page": ""}
            entry = found.setdefault(_key(field.name), new)
            found.setdefault(_key(name), entry)
            entry["commands"].append(f"`relayd {question.command}`")
    return found


def _key(word: str) -> str:
    return word.strip().lstrip("-").replace("-", " ").replace("_", " ").casefold()


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:].removesuffix('.')}."
