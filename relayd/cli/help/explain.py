"""``relayd explain``: what a word of the answers, or an option of a question, means."""

from __future__ import annotations

import argparse
import json
import tomllib
from difflib import get_close_matches
from typing import Any

from planner.fields.specified import fields_of
from planner.model.errors import InputError
from relayd.catalogue.loading import built_in_folder
from relayd.cli import text
from relayd.cli.output import page
from relayd.questions.registry import QUESTIONS

FILE = "glossary.toml"


def run(options: argparse.Namespace) -> int:
    """Explain a term, or list all."""
    known = {**_fields(), **_terms()}
    if not options.term:
        listed = {entry["name"]: entry for entry in known.values() if not entry["commands"]}
        if options.json:
            print(json.dumps({"terms": list(listed.values())}, indent=2))
        else:
            rows = [(name, _first_sentence(entry["text"])) for name, entry in listed.items()]
            page("\n".join(text.filled(f"{name}: {what}", "  ") for name, what in rows))
        return 0
    word = " ".join(options.term)
    entry = known.get(_key(word))
    if entry is None:
        near = dict.fromkeys(known[key]["name"] for key in get_close_matches(_key(word), known, 3))
        meant = f"Did you mean {' or '.join(near)}? " if near else ""
        remedy = f"{meant}`relayd explain` lists the terms."
        raise InputError("term", "is not explained here", value=word, remedy=remedy)
    print(json.dumps(entry, indent=2) if options.json else _text(entry))
    return 0


def names() -> list[str]:
    """Return the terms that are explained."""
    return [term["name"] for term in _terms().values()]


def _text(entry: dict[str, Any]) -> str:
    lines = [text.styled(entry["name"], text.BOLD), text.filled(entry["text"])]
    if entry["commands"]:
        lines.append(text.filled(f"An option of {', '.join(entry['commands'])}."))
    if entry["page"]:
        lines.append(f"More: docs/{entry['page']}")
    return "\n".join(lines)


def _terms() -> dict[str, dict[str, Any]]:
    content = tomllib.loads((built_in_folder() / FILE).read_text(encoding="utf-8"))
    found: dict[str, dict[str, Any]] = {}
    for term in content["term"]:
        entry = {"name": term["name"], "text": term["text"], "commands": [], "page": term["page"]}
        for name in (term["name"], *term.get("also", ())):
            found[_key(name)] = entry
    return found


def _fields() -> dict[str, dict[str, Any]]:
    """Return the fields of all questions, by their names and by their options."""
    found: dict[str, dict[str, Any]] = {}
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


def _first_sentence(words: str) -> str:
    return words.partition(". ")[0].removesuffix(".") + "."
