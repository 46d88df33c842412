"""The pages of the dashboard, and the HTML that all of them share."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import cache
from html import escape
from string import Template

from relayd.dashboard.assets import FILES, Asset, asset
from relayd.version import __version__

_IMPORT = re.compile(r'^(?:import|export) .*from "(\.{1,2}/[\w./]+)";$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    """One page.

    Attributes
    ----------
    path : str
        Where it is served; all of one level, so that links are relative and a prefix of a
        reverse proxy does no harm.
    name : str
        Of its folder in ``files/``, which has its script ``page.js`` and its ``style.css``.
    title : str
    summary : str
        What it is for, in one sentence; read out and shown below the title.
    """

    path: str
    name: str
    title: str
    summary: str


PAGES = (
    Page("/", "home", "Home", "Ask first; then see what the answers rest on."),
    Page("/matrix", "matrix", "Matrix", "What is known of every pair of regions, at one glance."),
    Page("/map", "map", "Map", "Where traffic from a region or of a plan goes."),
    Page("/plan", "plan", "Plan", "Direct or relayed, how long, and what it costs."),
    Page(
        "/pair", "pair", "Pair", "What was measured between two regions, and what follows from it."
    ),
    Page("/campaigns", "campaigns", "Campaigns", "What is being measured, and what it takes."),
    Page("/fleet", "fleet", "Fleet", "Hosts that measure, their caps, and what has changed."),
    Page(
        "/quarantine", "quarantine", "Quarantine", "Samples that nothing rests on, and the reasons."
    ),
)


@cache
def rendered(page: Page) -> Asset:
    """Return a page as HTML, ready to be sent; its figures come later, by its script."""
    menu = "".join(_entry(other, other is page) for other in PAGES)
    template = Template((FILES / "shared" / "page.html").read_text("utf-8"))
    content = template.substitute(
        title=escape(page.title),
        summary=escape(page.summary),
        name=page.name,
        menu=menu,
        version=escape(__version__),
        modules="".join(map(_preload, _modules(f"{page.name}/page.js"))),
    )
    return asset(content.encode(), "text/html; charset=utf-8")


def _modules(script: str) -> list[str]:
    """Return what a script imports, and what that imports; not what it may import later."""
    found = [script]
    for name in found:  # grows meanwhile
        imported = _IMPORT.findall((FILES / name).read_text("utf-8"))
        paths = (posixpath.normpath(f"{name}/../{other}") for other in imported)
        found += [path for path in dict.fromkeys(paths) if path not in found]
    return found[1:]


def _preload(name: str) -> str:
    """Return a link by which all modules are asked for at once, not one after the other."""
    return f'<link rel="modulepreload" href="assets/{name}">\n'


def _entry(page: Page, is_current: bool) -> str:
    href = escape(page.path.removeprefix("/") or "./")
    current = ' aria-current="page"' if is_current else ""
    return f'<li><a href="{href}"{current}>{escape(page.title)}</a></li>'
