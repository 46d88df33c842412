"""The pages of the dashboard: HTML that all of them share, and the files that they load."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from html import escape
from pathlib import Path
from string import Template

from relayd.version import __version__

# ---- files ---------------------------------------------------------------------------------------

FILES = Path(__file__).resolve().parent / "files"
MEDIA_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is sent.

    Attributes
    ----------
    content : bytes
    media_type : str
    tag : str
        For If-None-Match.
    """

    content: bytes
    media_type: str
    tag: str


def asset(content: bytes, media_type: str) -> Asset:
    """Return content ready to be sent."""
    return Asset(content, media_type, blake2b(content, digest_size=12).hexdigest())


@cache
def assets() -> dict[str, Asset]:
    """Return all files by folder and name: only these are served, whatever a path may say."""
    return {
        str(path.relative_to(FILES)): asset(path.read_bytes(), MEDIA_TYPES[path.suffix])
        for path in sorted(FILES.glob("*/*"))
        if path.suffix in MEDIA_TYPES
    }


# ---- pages ---------------------------------------------------------------------------------------

# Only own files: no inline script or style, nothing from another host, no `eval`.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HTML = "text/html; charset=utf-8"
_MOST_LEVELS = 10
"""Of a path that is not there: a longer one would make a page much larger than the request."""
_IMPORT = re.compile(r'^(?:import|export) [^;]*?"(\.{1,2}/[\w./]+)";$', re.MULTILINE)


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
    Page("/", "plan", "Ask", "Direct or relayed, how long, at what cost."),
    Page("/matrix", "matrix", "Network", "What is known of every pair of regions."),
    Page("/now", "now", "Now", "What is wrong, what has changed, and what is under way."),
    Page("/campaigns", "campaigns", "Campaigns", "What is measured, and what it takes."),
    Page("/fleet", "fleet", "Fleet", "Hosts that measure, their caps, what changed."),
    Page("/quarantine", "quarantine", "Quarantine", "Samples that nothing rests on."),
    Page("/tokens", "tokens", "Tokens", "Who may do what, and when it was last used."),
)
LEADS = {
    "/ask": "./",
    "/network": "matrix",
    "/measure": "campaigns",
    "/pair": "./#open=pair",
    "/map": "./#open=world-map",
}
"""Targets of addresses: names in the menu, and former pages that are parts of Ask now."""
SIGN_IN = Page("/sign-in", "sign-in", "Sign in", "A token says what you may see and do.")
DOCS = Page("/docs", "docs", "API", "Every path, with a form to try it.")


@cache
def rendered(page: Page, *, needs_token: bool) -> Asset:
    """Return a page as HTML, ready to be sent; its figures come later, by its script.

    Where it says that it needs a token, the script of a signed-out page asks for nothing.
    """
    return asset(framed(page, mark=" data-needs-token" * needs_token).encode(), HTML)


def error_page(title: str, detail: str, request_id: str, path: str) -> bytes:
    """Return a page that says what went wrong, as HTML.

    Parameters
    ----------
    title, detail : str
        Of the problem.
    request_id : str
        Under which the service's log has it.
    path : str
        That was asked for, as it was sent: links are relative to it.
    """
    content = (
        f'<div class="error"><p class="problem">{escape(detail)}</p>'
        f'<p class="muted">Request {escape(request_id)}</p></div>'
    )
    root = "../" * min(path.count("/") - 1, _MOST_LEVELS)
    return framed(Page(path, "error", title, ""), content, root).encode()


def framed(page: Page, content: str = "", root: str = "", mark: str = "") -> str:
    """Return the HTML of a page; links begin with ``root``, where its path has several levels."""
    template = Template((FILES / "shared" / "page.html").read_text("utf-8"))
    return template.substitute(
        title=escape(page.title),
        summary=escape(page.summary),
        name=page.name,
        root=root,
        mark=mark,
        version=escape(__version__),
        modules="".join(_preload(name, root) for name in _modules(f"{page.name}/page.js")),
        content=content,
    )


def _modules(script: str) -> list[str]:
    """Return the modules that a script imports, and their imports; not those of later."""
    found = [script]
    for name in found:  # grows meanwhile
        imported = _IMPORT.findall((FILES / name).read_text("utf-8"))
        paths = (posixpath.normpath(f"{name}/../{other}") for other in imported)
        found += [path for path in dict.fromkeys(paths) if path not in found]
    return found[1:]


def _preload(name: str, root: str) -> str:
    """Return a link by which all modules are asked for at once, not one after the other."""
    return f'<link rel="modulepreload" href="{root}assets/{name}">\n'
