"""The text that answers share: what is at their head and end, and blocks that many have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

from planner.model.answer import Advice, Cost, FeeLine, OneMoreVm, Recommendation
from planner.model.estimate import AddressKind
from planner.model.text.figures import figure
from planner.model.text.page import BOLD, YELLOW, TextPage
from planner.model.units import duration_text, usd_text


class Routed(Protocol):
    """A path: two regions for direct or three through a relay, and the kind of address by link."""

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions that it passes."""

    @property
    def addresses(self) -> tuple[AddressKind, ...]:
        """Kinds of address of its links."""


def answer_text(
    page: TextPage,
    answer: Recommendation,
    verdict: str,
    subject: str,
    *blocks: str,
    vm_start_s: float = 0.0,
    sure: str = "",
) -> str:
    """Return an answer's text; blocks without text are left out.

    The verdict, the subject, which regions names were taken for and what is too old to rely on; the
    reason, the blocks, how sure it is, the snapshot, and other notes.
    """
    taken = [one.note for one in answer.resolutions if one.note]
    lines = filter(None, (*subject.split("\n"), " ".join(taken)))
    old = (page.styled(page.filled(note), YELLOW) for note in answer.outdated)
    head = "\n".join([page.styled(verdict, BOLD), *map(page.filled, lines), *old])
    snapshot = answer.snapshot
    starts = ""
    if vm_start_s:
        starts = f"Times include {duration_text(vm_start_s)} until VMs have started. "
    as_of = f", as of {snapshot.as_of}" if snapshot.as_of else ""
    known = f"Snapshot {snapshot.id} ({snapshot.source}){as_of}."
    end = f"{starts}{sure} {known}".lstrip()
    others = [note for note in answer.warnings if note not in {*taken, *answer.outdated}]
    fees = page.listed("Fees, which the costs contain", map(_fee, answer.fees))
    tail = (fees, page.filled(end), *page.notes(others))
    parts = (head, page.filled(answer.reason), *blocks, *tail)
    return "\n\n".join(part for part in parts if part)


def _fee(fee: FeeLine) -> str:
    units = {"hour": "hours", "1,000 requests": "thousand requests"}
    unit = units.get(fee.unit, fee.unit)
    quantity = f"{fee.quantity:,.2f}".removesuffix(".00")
    return f"{fee.name}: {quantity} {unit} at ${fee.usd_per_unit:.6g}: {usd_text(fee.usd)}"


def vms_text(vms: Mapping[str, int], types: Mapping[str, str] = {}) -> str:
    """Return VMs such as ``2 m5.8xlarge at aws:us-east-1, 1 at aws:sa-east-1``."""
    names = {region: f" {vm_type.partition(':')[2]}" for region, vm_type in types.items()}
    return ", ".join(f"{count}{names.get(at, '')} at {at}" for at, count in vms.items())


_COSTS = {"$ egress": "cost_usd.egress", "$ VM": "cost_usd.vm", "$ total": "cost_usd.total"}


def ways_table(page: TextPage, ways: Sequence[tuple[str, Any]]) -> str:
    """Return a table of ways to send: rate, time, cost, and ratios to the first.

    Parameters
    ----------
    ways : sequence of tuple
        Name, and what has a duration and a cost, perhaps a rate and a round-trip time; or None. The
        one whose name begins with ``chosen`` has no row of its own where it is one of those before.
    """
    (_, base), ways = ways[0], list(ways)
    at = next(i for i, (name, _) in enumerate(ways) if name.startswith("chosen"))
    plan = ways[at][1]
    for i, (name, way) in enumerate(ways[:at]):
        if way and (way.duration_s, way.cost_usd) == (plan.duration_s, plan.cost_usd):
            ways[i : at + 1] = [(f"{name} (chosen)", way), *ways[i + 1 : at]]
            break

    def row(name: str, way: Any) -> dict[str, str]:
        if way is None or way.duration_s is None:
            return {"": name}
        found = {"": name, "time": duration_text(way.duration_s)}
        rate = getattr(way, "throughput_gbps", None) or 0.0
        if getattr(way, "rtt_ms", None):
            found["RTT"] = f"{way.rtt_ms:.0f} ms"
        if rate:
            found["Gbit/s"] = figure(way, "throughput_gbps")
        found |= {header: figure(way, field) for header, field in _COSTS.items()}
        # One transfer's ways compare by their rates.
        if rate and getattr(base, "rtt_ms", None) and (first := base.throughput_gbps):
            found["speed"] = f"{rate / first:.2f}x"
        elif base and base.duration_s:
            found["speed"] = f"{base.duration_s / way.duration_s:.2f}x"
        if base and base.cost_usd and base.cost_usd.total:
            found["cost"] = f"{way.cost_usd.total / base.cost_usd.total:.2f}x"
        return found

    rows = [row(*way) for way in ways]
    order = ("", "Gbit/s", "time", "RTT", *_COSTS, "speed", "cost")
    header = [name for name in order if any(name in row for row in rows)]
    return page.table(header, [[row.get(name, "-") for name in header] for row in rows])


def figures_text(
    duration_s: float,
    cost: Cost,
    vms: Mapping[str, int],
    types: Mapping[str, str] = {},
    more: str = "",
) -> str:
    """Return time, cost and VMs of a plan, and more, in a line."""
    named = vms_text(vms, types)
    return f"{duration_text(duration_s)}, {usd_text(cost.total)}; VMs: {named}{more}."


def path_text(path: Routed) -> str:
    """Return a path of two or three regions as ``direct``, or ``via`` its relay."""
    way = "direct" if len(path.regions) == 2 else f"via {path.regions[1]}"
    return f"{way}{private_text(path)}"


def private_text(path: Routed) -> str:
    """Return which links of a path are over private addresses, in brackets; ``""`` for none."""
    links = zip(pairwise(path.regions), path.addresses, strict=False)
    private = [f"{src} -> {dst}" for (src, dst), address in links if address == "private"]
    if not private:
        return ""
    whole = len(private) == len(path.addresses)
    return f" ({'private' if whole else f'{private[0]} private'})"


def bounds_text(low_s: float, high_s: float) -> str:
    """Return the bounds of a duration, as a sentence."""
    bounds = f"{duration_text(low_s)} to {duration_text(high_s)}"
    return f"Within the bounds of the estimates: {bounds}."


def advice_block(page: TextPage, advice: Iterable[Advice]) -> str:
    """Return the remedies with what they cost."""
    lines = []
    for one in advice:
        cost = f"saves {usd_text(-one.cost_usd)}" if one.cost_usd else "free"
        if one.cost_usd > 0:
            cost = f"costs {usd_text(one.cost_usd)} more"
        lines.append(f"{one.action}: {one.effect} ({cost})")
    return page.listed("What would help", lines)


def more_vms_block(page: TextPage, found: Iterable[OneMoreVm], sooner: str) -> str:
    """Word the gain from one more VM; `sooner` has a place for the time saved."""
    lines = [
        f"One more VM at {'each end of ' * ('->' in more.region)}{more.region}: "
        f"{duration_text(more.duration_s)} in all, " + sooner.format(duration_text(more.saved_s))
        for more in found
    ]
    return page.listed("What would help", lines)
