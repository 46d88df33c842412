"""Sessions with real sshds: trust, silence, loss, and nothing left running."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from probes.fleet import session as session_module
from probes.fleet.failures import ProbeError
from probes.fleet.hosts import Fleet, Host
from probes.fleet.login import Timeouts, connect, offered_keys, store_key
from probes.fleet.remote import leased, leases_of, tethered
from probes.fleet.sessions import Sessions
from tests.probes.fleet.machines import Machine, machines, make_key, need, owner
from tests.waiting import eventually, soon

_ROOT = Path(__file__).parents[3]
_REGIONS = ["aws:us-east-1", "gcp:us-east1"]
Fixture = tuple[Fleet, dict[str, Machine]]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fixture]:
    with machines(tmp_path_factory.mktemp("fleet"), _REGIONS) as found:
        yield found


@pytest.fixture
def frail(tmp_path: Path) -> Iterator[Fixture]:
    """A fleet whose machines a test may stop and change."""
    with machines(tmp_path, _REGIONS) as found:
        yield found


def _runs(word: str) -> list[int]:
    """Processes that have a word among their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if word.encode() in arguments:
                found.append(int(entry.name))
    return found


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def _nap_s(seconds: int) -> str:
    """Return about so many seconds, as no other process of tests writes them."""
    return f"{seconds}.{os.getpid()}"


def _gone(word: str) -> bool:
    return bool(eventually(lambda: not _runs(word)))


def _asked(members: Fleet, words: list[str], name: str = _REGIONS[0]) -> str:
    """Return the answer of a host to a command, in a session of its own."""

    async def main() -> bytes:
        async with Sessions(members, owner("test")) as sessions:
            return (await (await sessions.session(name)).ask(words)).stdout

    return asyncio.run(main()).decode()


def test_arguments_arrive_as_they_are(fleet: Fixture) -> None:
    words = ["a b", "$(id)", "'", '"', ";", "`x`", "\n", "*", "-n", "é", "\\"]
    assert _asked(fleet[0], ["printf", "%s\\0", *words]).split("\0")[:-1] == words


def test_the_output_of_a_flooding_host_is_cut(fleet: Fixture) -> None:
    """It once took `relayd probe` 16 s and 234 MB."""
    began_s = time.process_time()
    tracemalloc.start()
    with pytest.raises(ProbeError, match="wrote over 8 MiB"):
        _asked(fleet[0], ["yes", "flood"])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert time.process_time() - began_s < 8
    assert most < 40e6
    assert _gone("flood")


def test_a_busy_host_that_counts_ended_commands_still_runs_the_next(fleet: Fixture) -> None:
    # A server that is halted for moments reads the ends of several channels together with the
    # requests for new ones: it counts both, and allows ten.
    machine = fleet[1][_REGIONS[0]]

    async def main() -> list[int]:
        async with Sessions(fleet[0], owner("test")) as sessions:
            session = await sessions.session(_REGIONS[0])
            servers = [pid for pid in machine.everyone() if _name(pid) == "sshd"]

            async def halt() -> None:
                while True:
                    for number, pause_s in ((signal.SIGSTOP, 0.03), (signal.SIGCONT, 0.003)):
                        for pid in servers:
                            os.kill(pid, number)
                        await asyncio.sleep(pause_s)

            halting = asyncio.create_task(halt())
            try:
                outputs = await asyncio.gather(*(session.ask(["true"]) for _ in range(200)))
            finally:
                halting.cancel()
                machine.signal(signal.SIGCONT)
            return [output.status for output in outputs]

    assert asyncio.run(main()) == [0] * 200


def test_keys_are_trusted_only_when_stored_and_never_when_changed(
    frail: Fixture, tmp_path: Path
) -> None:
    members, found = frail
    name = _REGIONS[0]
    host = replace(members[name], known_hosts=tmp_path / "own" / "known_hosts")
    alone = Fleet({name: host})
    with pytest.raises(ProbeError, match="host key is not in") as unknown:
        _asked(alone, ["true"])
    assert unknown.value.lasting

    store_key(host, asyncio.run(offered_keys(alone, [host]))[name])
    assert _asked(alone, ["echo", "here"]) == "here\n"
    assert host.known_hosts.stat().st_mode & 0o777 == 0o600

    machine = found[name]
    machine.stop()
    for file in ("host_key", "host_key.pub"):
        (machine.folder / file).unlink()
    make_key(machine.folder / "host_key")
    machine.start()
    with pytest.raises(ProbeError, match="not the one on record"):
        _asked(alone, ["true"])
    assert asyncio.run(offered_keys(alone, [host])) == {}


def test_a_refused_login_and_a_closed_port_say_so(frail: Fixture, tmp_path: Path) -> None:
    members, found = frail
    first, second = (members[name] for name in _REGIONS)
    make_key(tmp_path / "stranger")
    strange = Fleet({first.name: replace(first, key=tmp_path / "stranger"), second.name: second})
    found[second.name].stop()
    with pytest.raises(ProbeError, match="was refused") as refused:
        _asked(strange, ["true"], first.name)
    assert refused.value.cause == "login"
    with pytest.raises(ProbeError, match="no SSH connection") as closed:
        _asked(strange, ["true"], second.name)
    assert closed.value.cause == "unreachable"


def test_a_cancellation_is_never_lost_in_connecting(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    (tmp_path / "known").touch()
    host = Host("a", "aws:us-east-1", "127.0.0.1", port, "nobody", None, tmp_path / "known")

    async def story() -> set[bool]:
        ends = set()
        for turns in range(60):  # cancelled at every step on the way, also with the refusal
            task = asyncio.create_task(connect(host, Timeouts(), None))
            for _ in range(turns):
                await asyncio.sleep(0)
            was_running = task.cancel()
            await asyncio.wait([task])
            assert task.cancelled() is was_running
            ends.add(was_running)
            if not was_running:
                assert isinstance(task.exception(), ProbeError)
        return ends

    assert asyncio.run(story()) == {True, False}


def test_a_jump_host_leads_to_a_host(fleet: Fixture) -> None:
    members, _ = fleet
    first, second = (members[name] for name in _REGIONS)
    behind = Fleet({second.name: replace(second, jump="gate")}, jumps={"gate": first})
    said = _asked(behind, ["sh", "-c", "echo $SSH_CONNECTION"], second.name)
    assert said.split()[3] == str(second.port)


def test_a_host_that_hangs_during_a_command_is_given_up(frail: Fixture) -> None:
    members, found = frail
    name = _REGIONS[0]
    timeouts = Timeouts(keepalive_s=1, keepalives=3, command_s=3)

    async def main() -> None:
        async with Sessions(members, owner("test"), timeouts=timeouts) as sessions:
            session = await sessions.session(name)
            found[name].signal(signal.SIGSTOP)
            await session.measure(["sleep", "1"], 1.0)

    with pytest.raises(ProbeError) as given_up:
        asyncio.run(asyncio.wait_for(main(), 60))
    assert (given_up.value.cause, given_up.value.host) == ("unreachable", name)


def test_a_tool_ends_with_its_limit_its_cancellation_and_its_block(fleet: Fixture) -> None:
    limited, cancelled, within = map(_nap_s, (611, 612, 613))

    async def main() -> None:
        async with Sessions(fleet[0], owner("test")) as sessions:
            session = await sessions.session(_REGIONS[0])
            with pytest.raises(ProbeError, match="had not ended after 1 s"):
                await session.measure(["sleep", limited], 1.0)
            assert _gone(limited)
            task = asyncio.create_task(session.measure(["sleep", cancelled], 60.0))
            await soon(lambda: _runs(cancelled))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert _gone(cancelled)
            with contextlib.suppress(RuntimeError):
                async with session.server(["sleep", within], 60.0):
                    await soon(lambda: _runs(within))
                    raise RuntimeError
            assert _gone(within)
            with pytest.raises(ProbeError, match="is not there") as missing:
                await session.measure(["no-such-tool"], 5.0)
            assert missing.value.cause == "missing-tool"

    asyncio.run(main())


_KILLED = """\
import asyncio, pickle, sys
from probes.fleet import session
from probes.fleet.sessions import Sessions

session.SILENCE_S = 1_000_000  # as if the host had ended the tether, too

async def main(fleet, name, owner, tool):
    async with Sessions(fleet, owner) as sessions:
        session = await sessions.session(name)
        await session.measure(["sh", "-c", tool], 900)

with open(sys.argv[1], "rb") as file:
    asyncio.run(main(pickle.load(file), *sys.argv[2:]))
"""


def _left_by_a_killed_controller(members: Fleet, tmp_path: Path) -> tuple[str, str]:
    """Return the two naps of a tool as commands, of which the first one goes on."""
    (tmp_path / "fleet").write_bytes(pickle.dumps(members))
    first_s, second_s = _nap_s(614), _nap_s(615)
    # A tool that outlives its channel and pays no heed to a hang-up.
    tool = f"trap '' HUP PIPE; sleep {first_s}; sleep {second_s}"
    words = [str(tmp_path / "fleet"), _REGIONS[0], owner("killed"), tool]
    controller = subprocess.Popen([sys.executable, "-c", _KILLED, *words], cwd=_ROOT)
    eventually(lambda: _runs(first_s))
    controller.kill()
    controller.wait()
    assert _runs(first_s)  # a killed controller ends nothing
    return first_s, second_s


def test_what_a_killed_controller_left_is_ended_at_the_next_contact(
    fleet: Fixture, tmp_path: Path
) -> None:
    members, _ = fleet
    name, other = _REGIONS
    first_s, second_s = _left_by_a_killed_controller(members, tmp_path)

    async def contact(controller: str, host: str) -> int:
        async with Sessions(members, controller) as sessions:
            return (await sessions.session(host)).leftovers

    # Of another controller, and of another host of the fleet on the same machine: not ours to end.
    assert asyncio.run(contact(owner("stranger"), name)) == 0
    assert asyncio.run(contact(owner("killed"), other)) == 0
    assert _runs(first_s)
    assert asyncio.run(contact(owner("killed"), name)) == 1
    assert _gone(first_s)
    assert not _runs(second_s)
    assert asyncio.run(contact(owner("killed"), name)) == 0


def test_a_lost_connection_is_made_anew(frail: Fixture) -> None:
    members, found = frail
    name = _REGIONS[0]

    async def main() -> bytes:
        async with Sessions(members, owner("test")) as sessions:
            session = await sessions.session(name)
            found[name].stop()
            with pytest.raises(ProbeError, match=r"connection was lost|did not answer"):
                await session.ask(["true"])
            found[name].start()
            return (await (await sessions.session(name)).ask(["echo", "back"])).stdout

    assert asyncio.run(main()) == b"back\n"


def test_a_host_that_an_earlier_run_visited_is_cleaned_up_without_being_used(
    fleet: Fixture, tmp_path: Path
) -> None:
    members, _ = fleet
    first_s, _ = _left_by_a_killed_controller(members, tmp_path)

    async def use_another() -> None:
        async with Sessions(members, owner("killed"), visited=_REGIONS) as sessions:
            await sessions.session(_REGIONS[1])

    asyncio.run(use_another())
    assert _gone(first_s)


@pytest.mark.parametrize("noticed", [True, False])
def test_what_a_lost_connection_left_is_ended_at_the_end(
    fleet: Fixture, noticed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "SILENCE_S", 1_000_000)
    members, _ = fleet
    name = _REGIONS[0]
    nap_s = _nap_s(616)

    async def main() -> None:
        async with Sessions(members, owner("test")) as sessions:
            session = await sessions.session(name)
            tool = ["sh", "-c", f"trap '' HUP PIPE; sleep {nap_s}"]
            running = asyncio.create_task(session.measure(tool, 900))
            await soon(lambda: _runs(nap_s))
            if noticed:
                sessions.forget(name)
            else:
                session.abort()
            with pytest.raises(ProbeError, match="connection was lost"):
                await running
            assert _runs(nap_s)

    asyncio.run(main())
    assert _gone(nap_s)


_OWN_TMP = """\
mount -t tmpfs none /mnt
mkdir -p "/mnt/$1"
mount --rbind "/tmp/$1" "/mnt/$1"
ln -s "$2" "/mnt/relayd-$(id -u)"
mount --rbind /mnt /tmp
shift 2
exec "$@"
"""


def test_a_folder_that_leads_elsewhere_is_not_written_to(frail: Fixture, tmp_path: Path) -> None:
    need("unshare")
    if os.geteuid() != 0:
        pytest.skip("a /tmp of its own needs root")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    members, found = frail
    machine = found[_REGIONS[0]]
    machine.stop()
    ours = tmp_path.relative_to("/tmp").parts[0]
    machine.start("unshare", "--mount", "sh", "-ec", _OWN_TMP, "sh", ours, str(elsewhere))

    async def main() -> None:
        async with Sessions(members, owner("test")) as sessions:
            session = await sessions.session(_REGIONS[0])
            await session.measure(["true"], 5.0)

    with pytest.raises(ProbeError, match="no file can be written"):
        asyncio.run(main())
    assert not list(elsewhere.iterdir())


def test_a_folder_that_another_session_has_just_removed_is_made_again() -> None:
    removing = 'while :; do rmdir "$1" 2>/dev/null; done'
    folder = f"/tmp/relayd-{os.geteuid()}"
    with subprocess.Popen(["sh", "-c", removing, "sh", folder]) as another:
        try:
            for number in range(20):
                lease = f"test-{os.getpid()}-{number}"
                done = subprocess.run(leased(lease, 30, ["sh", "-c", 'rm "$RELAYD_LEASE"']))
                assert done.returncode == 0
        finally:
            another.kill()


@pytest.mark.service
@pytest.mark.parametrize("how", ["closed", "silent"])
def test_a_tethered_process_ends_with_its_controller(how: str) -> None:
    lease, nap_s = leases_of("test of tethers", how) + "1", _nap_s(60)
    command = leased(lease, 60, tethered(4, ["sleep", nap_s]))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    assert process.stdin
    for _ in range(10):
        process.stdin.write(b".")
        process.stdin.flush()
        time.sleep(0.5)
        assert process.poll() is None  # longer than its silence, because it hears
    assert _runs(nap_s)
    if how == "closed":
        process.stdin.close()
    process.wait(60)
    assert _gone(nap_s)
    assert not list(Path("/tmp").glob(f"relayd-*/{lease}"))
    if how == "silent":
        process.stdin.close()
