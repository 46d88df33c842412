"""What the commands that ask questions print: an answer as JSON, and the text that many share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from planner.fields.specified import Specified
from planner.model.answer import Advice, OneMoreVm, Recommendation
from planner.model.estimate import AddressKind
from planner.model.network import Snapshot
from planner.model.units import duration_text, usd_text
from relayd.cli import text
from relayd.cli.options import wan_of
from relayd.cli.questions.options import one_thread, request_from
from relayd.cli.text import filled, notes_block, styled


def ask_and_print(
    options: argparse.Namespace, request: type[Specified], human: Callable[[Any], str]
) -> int:
    """Ask what the options say, and print the answer: as JSON, or as text for people."""
    one_thread()
    answer = wan_of(options).ask(request_from(options, request))
    print(answer.model_dump_json(indent=2) if options.json else human(answer))
    return 0


def headed(verdict: str, rest: str) -> str:
    """Return an answer's first block: the verdict in bold, and the rest below."""
    return "\n".join([text.styled(verdict, text.BOLD), *map(filled, rest.split("\n"))])


def with_notes(blocks: Sequence[str], answer: Recommendation) -> str:
    """Return an answer's text: what is too old to rely on before all else, other notes after it."""
    old = [styled("\n".join(map(filled, answer.outdated)), text.YELLOW)] if answer.outdated else []
    others = [note for note in answer.warnings if note not in answer.outdated]
    return "\n\n".join([*old, *blocks, *notes_block(others)])


def vms_text(vms: Mapping[str, int]) -> str:
    """Return VMs such as ``2 at aws:us-east-1, 1 at aws:sa-east-1``."""
    return ", ".join(f"{count} at {region}" for region, count in vms.items())


def path_text(regions: tuple[str, ...], addresses: tuple[AddressKind, ...]) -> str:
    """Return how a path of two or three regions leads: ``direct``, or ``via`` its relay."""
    way = "direct" if len(regions) == 2 else f"via {regions[1]}"
    return f"{way}{private_text(regions, addresses)}"


def private_text(regions: tuple[str, ...], addresses: tuple[AddressKind, ...]) -> str:
    """Return which links of a path are over private addresses, in brackets; ``""`` for none."""
    private = [
        f"{src} -> {dst}"
        for (src, dst), address in zip(pairwise(regions), addresses, strict=False)
        if address == "private"
    ]
    if not private:
        return ""
    return f" ({'private' if len(private) == len(addresses) else f'{private[0]} private'})"


def bounds_text(low_s: float, high_s: float) -> str:
    """Return the bounds of a duration, as a sentence."""
    bounds = f"{duration_text(low_s)} to {duration_text(high_s)}"
    return f"Within the bounds of the estimates: {bounds}."


def snapshot_text(snapshot: Snapshot) -> str:
    """Return what an answer rests on: the snapshot's id, source and time."""
    return f"{snapshot.id} ({snapshot.source}), as of {snapshot.as_of}."


def advice_block(advice: Iterable[Advice]) -> list[str]:
    """Return the block of remedies with what they cost; none where there are none."""
    lines = []
    for one in advice:
        sign = "+" if one.cost_usd > 0 else "-"
        cost = f"{sign}${usd_text(abs(one.cost_usd))}" if one.cost_usd else "free"
        lines.append(f"{one.action}: {one.effect} ({cost})")
    return listed_block("What would help", lines)


def more_vms_block(found: Iterable[OneMoreVm], sooner: str) -> list[str]:
    """Return the block of what one more VM brings; `sooner` has a place for the time saved."""
    lines = [
        f"One more VM at {'each end of ' * ('->' in more.region)}{more.region}: "
        f"{duration_text(more.duration_s)} in all, " + sooner.format(duration_text(more.saved_s))
        for more in found
    ]
    return listed_block("What would help", lines)


def listed_block(title: str, lines: Iterable[str]) -> list[str]:
    """Return the block of a list under a title; none where the list is empty."""
    listed = [filled(f"- {line}", indent="  ") for line in lines]
    return ["\n".join([text.styled(title, text.BOLD), *listed])] if listed else []
