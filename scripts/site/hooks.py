"""Hooks of MkDocs: the generated reference, and links to files that are no pages of the site."""

from __future__ import annotations

import posixpath
import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from scripts.site.reference import pages

LINK = re.compile(r"\]\((?!\w+:|#)([^)#]+)(#[^)]*)?\)")
ROLE = re.compile(r":\w+:<code>~?")
OF_THE_ROOT = {"CHANGELOG.md": "docs/changelog.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for place, content in pages().items():
        files.append(File.generated(config, place, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Let links to files of the repository lead there, and the rest to pages."""
    origin = "." if page.file.src_uri == "changelog.md" else "docs"
    folder = posixpath.join(origin, posixpath.dirname(page.file.src_uri))

    def replaced(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[1]))
        target = OF_THE_ROOT.get(target, target)
        if target.startswith("docs/"):
            here = posixpath.join("docs", posixpath.dirname(page.file.src_uri))
            return f"]({posixpath.relpath(target, here)}{link[2] or ''})"
        return f"]({config.repo_url}/blob/main/{target}{link[2] or ''})"

    return LINK.sub(replaced, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Show the names that docstrings refer to without the roles of Sphinx."""
    return ROLE.sub("<code>", html)
