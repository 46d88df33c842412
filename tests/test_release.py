"""A release is the same bytes each time, says what it runs with, and can be verified."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from relayd.cli.commands import build_parser
from relayd.version import __version__
from scripts import release
from scripts.console_blocks import ROOT
from scripts.man_page import PLACE, man_page
from scripts.release import build, sign
from tests.test_docs import commands


@pytest.mark.thorough
def test_a_release_is_reproducible_complete_and_signed(tmp_path: Path) -> None:
    first, second = (build(tmp_path / name) for name in ("first", "second"))
    assert [path.name for path in first] == [path.name for path in second]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name

    (bill,) = (path for path in first if path.name.endswith(".cdx.json"))
    parts = {part["name"]: part for part in json.loads(bill.read_text())["components"]}
    assert parts["aiohttp"]["version"] == version("aiohttp")
    assert parts["aiohttp"]["scope"] == "required"
    assert parts["multidict"]["scope"] == "required"  # which aiohttp needs
    assert parts["psycopg"]["scope"] == "optional"
    assert "pytest" not in parts
    (wheel,) = (path for path in first if path.suffix == ".whl")
    listed = subprocess.run(
        ["python3", "-m", "zipfile", "-l", wheel], capture_output=True, text=True
    )
    for file in ("relayd/_configs/regions.toml", "relayd/store/schema.sql"):
        assert file in listed.stdout
    assert "tests/" not in listed.stdout
    assert PLACE in listed.stdout

    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh-keygen")
    key, sums = tmp_path / "key", first[-1]
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    signature = sign(sums, str(key))
    signers = tmp_path / "signers"
    signers.write_text(f"release@relayd {key.with_suffix('.pub').read_text()}")
    check = [
        "ssh-keygen",
        "-Y",
        "verify",
        "-f",
        str(signers),
        "-I",
        "release@relayd",
        "-n",
        "relayd",
    ]
    for content, code in ((sums.read_bytes(), 0), (b"others", 255)):
        done = subprocess.run([*check, "-s", str(signature)], input=content, capture_output=True)
        assert done.returncode == code
    checked = subprocess.run(["sha256sum", "--check", sums], cwd=sums.parent, capture_output=True)
    assert checked.returncode == 0


def test_chart_image_and_changelog_are_of_this_version() -> None:
    chart = yaml.safe_load((ROOT / "deploy/helm/relayd/Chart.yaml").read_text())
    compose = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__
    assert compose["services"]["relayd"]["image"] == f"relayd:{__version__}"
    assert f"\n## [{__version__}] - 20" in (ROOT / "CHANGELOG.md").read_text()


def test_the_manual_page_has_every_command_and_is_good_roff() -> None:
    page = man_page()
    names = [name for name, _ in commands(build_parser(), "relayd")]
    assert "relayd data catalogue undo" in names
    assert [name for name in names if name.replace("-", r"\-") not in page] == []
    if shutil.which("groff"):
        groff = ["groff", "-man", "-Tutf8", "-ww"]
        done = subprocess.run(groff, input=page, capture_output=True, text=True, check=True)
        lines = done.stderr.splitlines()
        assert [line for line in lines if "cannot adjust line" not in line] == []


def test_a_release_is_signed_by_gnupg_or_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if shutil.which("gpg") is None:
        pytest.skip("needs gpg")

    def build_one(folder: Path) -> list[Path]:
        folder.mkdir()
        sums = folder / "SHA256SUMS"
        sums.write_text("a sum\n")
        return [sums]

    monkeypatch.setattr(release, "build", build_one)
    home = tmp_path / "gnupg"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    who = "release@relayd.example"
    key = ["--quick-generate-key", who, "ed25519", "sign", "1d"]
    subprocess.run(["gpg", "--batch", "--quiet", "--passphrase", "", *key], check=True)
    try:
        monkeypatch.setenv("SIGNING_KEY", who)
        assert release.main([str(tmp_path / "signed")]) == 0
        sums, signature = (tmp_path / "signed" / f"SHA256SUMS{end}" for end in ("", ".asc"))
        assert _verified(signature, sums)
        sums.write_text("another\n")
        assert not _verified(signature, sums)

        monkeypatch.setenv("SIGNING_KEY", "nobody@relayd.example")
        assert release.main([str(tmp_path / "unsigned")]) == 1
        assert "No release: gpg ended with" in capfd.readouterr().err
        assert sorted(path.name for path in tmp_path.iterdir()) == ["gnupg", "signed"]
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], check=True)


def _verified(signature: Path, sums: Path) -> bool:
    done = subprocess.run(["gpg", "--verify", signature, sums], capture_output=True)
    return done.returncode == 0
