"""Colours for edges such that no two at one vertex are alike, with few colours.

Edges are probes, vertices hosts, colours rounds. Deciding whether a graph can do with as many
colours as its greatest degree D is NP-hard (Holyer 1981), so this holds to proven bounds and
usually does better:

- every pair of n vertices once or several times each: the round-robin tournament, n - 1 colours a
  time for even n and n for odd n, which is the least possible;
- bipartite multigraphs: D (König 1916), by swapping two colours along alternating paths;
- any multigraph with at most m parallel edges: D + m (Vizing 1964), by shifting colours round a
  fan at one end of an edge (as in Stiebitz et al., Graph Edge Coloring, 2012, section 2.1).

networkx colours vertices only, and rustworkx's Misra-Gries takes no parallel edges, which two
directions between two hosts are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from random import Random
from typing import TypeAlias

Edge: TypeAlias = tuple[int, int]

# Orders of the edges that are tried for a colouring with the fewest colours there can be.
ATTEMPTS = 8
# Beyond this many edges, one attempt takes seconds.
MANY_EDGES = 5_000


def fewest_colours(edges: Sequence[Edge]) -> int:
    """Return a lower bound: the greatest degree, or what the largest matching allows.

    A colour holds at most ``floor(v / 2)`` of a connected part's edges, v its vertices.
    """
    degrees = _degrees(edges)
    least = max(degrees.values(), default=0)
    for vertices, count in _parts(edges):
        least = max(least, -(-count // (vertices // 2)))
    return least


def colour_edges(edges: Sequence[Edge]) -> list[int]:
    """Return a colour for each edge, from 0 without gaps.

    Parameters
    ----------
    edges : sequence of (vertex, vertex)
        Undirected, may repeat; no loops.
    """
    if not edges:
        return []
    least = fewest_colours(edges)
    best = _round_robin(edges)
    if max(best) + 1 == least:
        return best
    attempts = ATTEMPTS if len(edges) <= MANY_EDGES else 1
    for seed in range(attempts):
        order = list(range(len(edges)))
        if seed:
            Random(seed).shuffle(order)  # noqa: S311 - no secret
        colours = _by_fans([edges[i] for i in order], least)
        if max(colours) < max(best):
            best = [0] * len(edges)
            for i, colour in zip(order, colours, strict=True):
                best[i] = colour
        if max(best) + 1 == least:
            break
    return best


def _degrees(edges: Sequence[Edge]) -> Counter[int]:
    return Counter(vertex for edge in edges for vertex in edge)


def _parts(edges: Sequence[Edge]) -> list[tuple[int, int]]:
    """Return (vertices, edges) of each connected part."""
    parent: dict[int, int] = {}

    def root(vertex: int) -> int:
        while (above := parent.setdefault(vertex, vertex)) != vertex:
            parent[vertex] = parent[above]
            vertex = above
        return vertex

    for a, b in edges:
        parent[root(a)] = root(b)
    vertices = Counter(root(vertex) for vertex in list(parent))
    counts = Counter(root(a) for a, _ in edges)
    return [(vertices[r], counts[r]) for r in vertices]


def _round_robin(edges: Sequence[Edge]) -> list[int]:
    """Colour by the circle method, the n-th parallel edge in the n-th tournament."""
    place = {vertex: i for i, vertex in enumerate(sorted(_degrees(edges)))}
    count = len(place)
    size = count + count % 2
    seen: Counter[Edge] = Counter()
    raw = []
    for a, b in edges:
        i, j = sorted((place[a], place[b]))
        repeat = seen[i, j]
        seen[i, j] += 1
        # One stands still (the last, or nobody if the count is odd), the others go round.
        day = (2 * i) % (size - 1) if j == size - 1 else (i + j) % (size - 1)
        raw.append(repeat * size + day)
    number = {colour: k for k, colour in enumerate(sorted(set(raw)))}
    return [number[colour] for colour in raw]


class _Colouring:
    """A partial colouring: at each vertex, which edge has a colour."""

    def __init__(self, edges: Sequence[Edge], palette: int) -> None:
        self.edges = edges
        self.palette = palette
        self.at: dict[int, dict[int, int]] = defaultdict(dict)  # vertex -> colour -> edge
        self.colours = [-1] * len(edges)

    def far_end(self, edge: int, vertex: int) -> int:
        a, b = self.edges[edge]
        return b if vertex == a else a

    def free(self, vertex: int) -> list[int]:
        used = self.at[vertex]
        return [colour for colour in range(self.palette) if colour not in used]

    def paint(self, painted: dict[int, int]) -> None:
        """Give edges new colours, all at once."""
        for edge in painted:
            if (old := self.colours[edge]) >= 0:
                for vertex in self.edges[edge]:
                    del self.at[vertex][old]
        for edge, colour in painted.items():
            self.colours[edge] = colour
            for vertex in self.edges[edge]:
                self.at[vertex][colour] = edge

    def chain(self, vertex: int, colour: int, other: int) -> tuple[list[int], int]:
        """Return the path of two colours from a vertex, starting with one, and where it ends."""
        path = []
        while (edge := self.at[vertex].get(colour)) is not None:
            path.append(edge)
            vertex = self.far_end(edge, vertex)
            colour, other = other, colour
        return path, vertex

    def swap(self, path: Sequence[int], one: int, other: int) -> None:
        """Exchange two colours along a path that ends where neither goes on."""
        self.paint({edge: other if self.colours[edge] == one else one for edge in path})


def _by_fans(edges: Sequence[Edge], palette: int) -> list[int]:
    """Colour the edges one by one; a colour is added only when a whole fan finds no room."""
    colouring = _Colouring(edges, palette)
    for edge in range(len(edges)):
        while not _place(colouring, edge):
            colouring.palette += 1
    return colouring.colours


def _place(colouring: _Colouring, edge: int) -> bool:
    """Colour one more edge, moving others if need be; False if the palette has no room."""
    return any(_turn_fan(colouring, edge, hub) for hub in colouring.edges[edge])


def _turn_fan(colouring: _Colouring, edge: int, hub: int) -> bool:
    """Grow a fan of edges at one end until some colours can be shifted along it.

    Each blade's colour is free at the far end of an earlier blade, so a free colour may enter at
    any blade and push the others' colours towards the edge that has none.
    """
    free_at_hub = colouring.free(hub)
    if not free_at_hub:
        return False
    blades = [edge]
    tips = [colouring.far_end(edge, hub)]
    if free_at_tip := colouring.free(tips[0]):
        # König's step: in a bipartite graph this path can never come back to the hub.
        path, end = colouring.chain(tips[0], free_at_hub[0], free_at_tip[0])
        if end != hub:
            colouring.swap(path, free_at_hub[0], free_at_tip[0])
            colouring.paint({edge: free_at_hub[0]})
            return True
    pushed_by = [-1]  # each blade's colour is free at the tip of this earlier one
    first_with: dict[int, int] = {}  # free colour -> first blade at whose tip it is free
    in_fan = {edge}
    i = 0
    while i < len(blades):
        free = colouring.free(tips[i])
        shared = next((colour for colour in free_at_hub if colour not in colouring.at[tips[i]]), -1)
        if shared >= 0:
            _shift(colouring, blades, pushed_by, i, shared)
            return True
        for colour in free:
            j = first_with.setdefault(colour, i)
            if tips[j] != tips[i]:
                # Two tips lack one colour: at most one of them is joined to the hub by the path
                # of that colour and one that the hub lacks. Swapping along the other's path frees
                # the hub's colour there (or, if the two are joined to each other, at both).
                spare = free_at_hub[0]
                k = j
                path, end = colouring.chain(tips[j], spare, colour)
                if end == hub:
                    k = i
                    path, end = colouring.chain(tips[i], spare, colour)
                colouring.swap(path, spare, colour)
                if end == tips[j]:
                    k = j
                _shift(colouring, blades, pushed_by, k, spare)
                return True
        for colour in free:
            blade = colouring.at[hub].get(colour)
            if blade is not None and blade not in in_fan:
                in_fan.add(blade)
                blades.append(blade)
                tips.append(colouring.far_end(blade, hub))
                pushed_by.append(i)
        i += 1
    return False


def _shift(
    colouring: _Colouring, blades: Sequence[int], pushed_by: Sequence[int], at: int, colour: int
) -> None:
    """Let a colour enter at one blade and push colours on to the blade that has none."""
    painted = {}
    while at >= 0:
        painted[blades[at]] = colour
        colour = colouring.colours[blades[at]]
        at = pushed_by[at]
    colouring.paint(painted)
