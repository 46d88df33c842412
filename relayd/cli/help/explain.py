"""``relayd explain``: what a word of the answers, or an option of a question, means."""

from __future__ import annotations

import argparse
import json
from typing import Any

from relayd.cli import text
from relayd.cli.output import page
from relayd.questions.explanations import explanation, terms


def run(options: argparse.Namespace) -> int:
    """Explain a term, or list all."""
    if options.term:
        entry = explanation(" ".join(options.term))
        print(json.dumps(entry, indent=2) if options.json else _text(entry))
    elif options.json:
        print(json.dumps({"terms": terms()}, indent=2))
    else:
        rows = [(entry["name"], _first_sentence(entry["text"])) for entry in terms()]
        page("\n".join(text.filled(f"{name}: {what}", "  ") for name, what in rows))
    return 0


def _text(entry: dict[str, Any]) -> str:
    lines = [text.styled(entry["name"], text.BOLD), text.filled(entry["text"])]
    if entry["commands"]:
        lines.append(text.filled(f"An option of {', '.join(entry['commands'])}."))
    if entry["page"]:
        lines.append(f"More: docs/{entry['page']}")
    return "\n".join(lines)


def _first_sentence(words: str) -> str:
    return words.partition(". ")[0].removesuffix(".") + "."
