"""The text that many answers share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from planner.model.answer import Advice, OneMoreVm, Recommendation
from planner.model.estimate import AddressKind
from planner.model.network import Snapshot
from planner.model.units import duration_text, gbps_text, usd_text
from relayd.cli import text
from relayd.cli.text import filled, notes_block, styled


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


def ways_table(ways: Sequence[tuple[str, Any]]) -> str:
    """Return a table of ways to send: rate, time, cost, and ratios to the first.

    A way is any part of an answer with ``duration_s`` and ``cost_usd``; None where there is none.
    """
    header = ("", "Gbit/s", "time", "RTT", "$ egress", "$ VM", "$ total", "speed", "cost")
    base = ways[0][1]
    base_usd = base.cost_usd.total if base and base.cost_usd else 0.0
    rows = []
    for name, way in ways:
        if way is None or way.duration_s is None or way.cost_usd is None:
            rows.append([name, *["-"] * 8])
            continue
        cost, gbps = way.cost_usd, getattr(way, "throughput_gbps", None)
        paths = getattr(way, "paths", ())
        rtt_ms = max((path.rtt_ms for path in paths), default=getattr(way, "rtt_ms", None))
        speed = base.duration_s / way.duration_s if base and base.duration_s else None
        if rtt_ms and gbps and base and base.throughput_gbps:  # of one transfer: of its rates
            speed = gbps / base.throughput_gbps
        rows.append(
            [
                name,
                "-" if gbps is None else gbps_text(gbps),
                duration_text(way.duration_s),
                f"{rtt_ms:.0f} ms" if rtt_ms else "-",
                *(usd_text(usd) for usd in (cost.egress, cost.vm, cost.total)),
                f"{speed:.2f}x" if speed else "-",
                f"{cost.total / base_usd:.2f}x" if base_usd else "-",
            ]
        )
    columns = [k for k in range(len(header)) if k == 0 or any(row[k] != "-" for row in rows)]
    return text.table([header[k] for k in columns], [[row[k] for k in columns] for row in rows])


def path_text(regions: tuple[str, ...], addresses: tuple[AddressKind, ...]) -> str:
    """Return a path of two or three regions as ``direct``, or ``via`` its relay."""
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
    """Return the snapshot of an answer: its id, source and time."""
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
