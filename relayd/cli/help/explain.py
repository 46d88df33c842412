"""``relayd help``: what a word of the answers, or an option of a question, means."""

from __future__ import annotations

import argparse

from relayd.cli import text
from relayd.cli.output import print_paged, respond
from relayd.questions.explanations import explanation, terms


def run(options: argparse.Namespace) -> int:
    """Explain a term, or list all."""
    if options.json and not options.term:
        return respond(options, {"terms": terms()}, "")
    if not options.term:
        firsts = (
            f"{of['name']}: {of['text'].partition('. ')[0].removesuffix('.')}." for of in terms()
        )
        print_paged("\n".join(text.page().filled(first, "  ") for first in firsts))
        return 0
    entry = explanation(" ".join(options.term))
    lines = [text.page().styled(entry["name"], text.BOLD), text.page().filled(entry["text"])]
    if entry["commands"]:
        lines.append(text.page().filled(f"An option of {', '.join(entry['commands'])}."))
    if entry["page"]:
        lines.append(f"More: docs/{entry['page']}")
    return respond(options, entry, "\n".join(lines))
