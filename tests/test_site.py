"""The documentation site: built strictly, nothing from other hosts, every page in three clicks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag

import pytest

from scripts.console_blocks import ROOT

pytestmark = pytest.mark.thorough

LOADS = {"img": "src", "script": "src", "iframe": "src", "source": "src", "link": "href"}


class Links(HTMLParser):
    """What a page leads to, what it loads, and its anchors."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.add(given.get("id", ""))
        if tag == "a" and "href" in given:
            self.targets.append(given["href"])
        elif tag in LOADS and given.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(given.get(LOADS[tag], ""))


def test_the_site_is_whole_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path)]
    offline = {"https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
    done = subprocess.run(
        build,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, **offline, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr

    pages = {path: Links(path) for path in tmp_path.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 40
    for path, page in pages.items():
        assert not [one for one in page.loaded if re.match(r"(\w+:)?//", one)], path
        for target in [*page.targets, *page.loaded]:
            file, anchor = urldefrag(target)
            if re.match(r"\w+:|//", target):
                continue
            other = (path.parent / file).resolve() if file else path
            other = other / "index.html" if other.is_dir() else other
            assert other.is_file(), f"{path.name}: {target}"
            if anchor and other in pages:
                assert anchor in pages[other].anchors, f"{path.name}: {target}"
    for sheet in [*tmp_path.rglob("*.css")]:
        assert not re.search(r"url\(.?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet

    reached = clicked = {tmp_path / "index.html"}
    for _ in range(3):
        leads = {(p.parent / urldefrag(t)[0]).resolve() for p in clicked for t in pages[p].targets}
        clicked = (leads & set(pages)) - reached
        reached = reached | clicked
    assert reached == set(pages)

    python = (tmp_path / "reference" / "python.html").read_text(encoding="utf-8")
    assert "from_matrices" in python  # docstrings were read
    assert ":class:" not in python
    for part in ("commands.html", "questions.html", "http.html", "glossary.html", "openapi.json"):
        assert (tmp_path / "reference" / part).stat().st_size > 10_000, part
