"""Which of our modules imports which: read from the sources, importing nothing."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("planner", "probes", "relayd")


@dataclass(frozen=True)
class Import:
    """That a module imports another (or a package from outside), and where."""

    importer: str
    imported: str
    line: int
    in_function: bool
    for_typing: bool


@cache
def sources() -> Mapping[str, Path]:
    """Return the file of every module of ours, by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree_of(module: str) -> ast.Module:
    """Return a module's syntax tree."""
    return ast.parse(sources()[module].read_text(encoding="utf-8"))


@cache
def nodes_of(module: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a module's syntax tree."""
    return tuple(ast.walk(tree_of(module)))


@cache
def imports_of(module: str) -> tuple[Import, ...]:
    """Return every import of a module, wherever it stands."""
    return tuple(_within(tree_of(module), module, in_function=False, for_typing=False))


def _within(node: ast.AST, module: str, *, in_function: bool, for_typing: bool) -> Iterator[Import]:
    where = {"in_function": in_function, "for_typing": for_typing}
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(module, alias.name, node.lineno, **where)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"{module} imports relatively, which these tests can't follow"
        base = node.module or ""
        names = (f"{base}.{alias.name}" for alias in node.names)
        for name in dict.fromkeys(name if name in sources() else base for name in names):
            yield Import(module, name, node.lineno, **where)
    elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        for statement in node.body:
            yield from _within(statement, module, in_function=in_function, for_typing=True)
        for statement in node.orelse:
            yield from _within(statement, module, **where)
    else:
        inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            yield from _within(child, module, in_function=inside, for_typing=for_typing)


@cache
def entry_points() -> Mapping[str, tuple[str, ...]]:
    """Return, by group, the modules of ours that ``pyproject.toml`` registers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        group: tuple(dict.fromkeys(value.partition(":")[0] for value in points.values()))
        for group, points in project["entry-points"].items()
    }


def named_in_text(module: str) -> Iterator[str]:
    """Yield modules of ours that a module names in a string, by which it may import them.

    A name in a docstring imports nothing. The group of entry points that it names stands for the
    modules that are registered in it.
    """
    docstrings = {id(node.value) for node in nodes_of(module) if isinstance(node, ast.Expr)}
    for node in nodes_of(module):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        if id(node) not in docstrings:
            yield from entry_points().get(node.value, ())
            if (name := node.value.partition(":")[0]) in sources() and name not in PACKAGES:
                yield name


@cache
def import_graph() -> Mapping[str, frozenset[str]]:
    """Return the modules of ours that each imports: deferred, for typing or by a name in a string.

    What ``__init__`` of a package imports by its stub on first use (PEP 562) does not count.
    """
    return {
        module: frozenset(
            name
            for name in (*(found.imported for found in imports_of(module)), *named_in_text(module))
            if name in sources() and name != module
        )
        for module in sources()
    }


def room(module: str) -> str:
    """Return the folder right below a package that a module belongs to: ``planner.model``."""
    return ".".join(module.split(".")[:2])


@cache
def room_graph() -> Mapping[str, frozenset[str]]:
    """Return the rooms that each room imports; a package's own ``__init__`` is none."""
    graph: dict[str, set[str]] = {}
    for module, imported in import_graph().items():
        others = graph.setdefault(room(module), set())
        others |= {room(name) for name in imported} - {room(module), *PACKAGES}
    return {name: frozenset(others) for name, others in graph.items() if name not in PACKAGES}


def circles(graph: Mapping[str, Collection[str]]) -> list[frozenset[str]]:
    """Return the sets of nodes that reach each other (strongly connected components of several)."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = set(graph.get(waiting.pop(), ())) - seen
            seen |= new
            waiting += new
        return seen

    reach = {node: reached(node) for node in graph}
    found = {
        frozenset(other for other in reach[node] if node in reach.get(other, ()))
        for node in graph
        if node in reach[node]
    }
    return sorted(found, key=sorted)
