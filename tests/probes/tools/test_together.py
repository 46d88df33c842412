"""Several programs of a host as one command: real shells, and a real sshd for the servers."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.fleet.failures import ProbeError
from probes.fleet.sessions import Sessions
from probes.tools.iperf3 import Iperf3
from probes.tools.together import all_ready, clients, outputs, servers
from tests.probes.fleet.machines import machines, need, owner

REGION = "aws:us-east-1"
PRINT = 'BEGIN { for (i = 0; i < ARGV[2]; i++) printf "%s", ARGV[1]; exit ARGV[3] }'


def _printed(command: list[str]) -> bytes:
    done = subprocess.run(
        ["env", "LC_ALL=C", *command], stdin=subprocess.DEVNULL, capture_output=True, check=True
    )
    return done.stdout


@settings(max_examples=8)
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_characters="\0\n", codec="utf-8"), max_size=5),
            st.sampled_from([1, 100, 30_000]),
            st.sampled_from([0, 1, 127]),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_each_client_has_its_output_and_its_exit_code(programs: list[tuple[str, int, int]]) -> None:
    # More than a pipe holds, and the last ready first: their order is that of the commands.
    commands = [
        (0.02 * (len(programs) - i), ["awk", PRINT, *map(str, program)])
        for i, program in enumerate(programs)
    ]
    found = outputs("host", _printed(clients(commands)))
    assert [(one.stdout, one.status) for one in found] == [
        ((text * count).encode(), code) for text, count, code in programs
    ]


def test_output_that_was_cut_off_is_refused() -> None:
    printed = _printed(clients([(0, ["echo", "some text"]), (0, ["echo", "more"])]))
    first = len(b"0 9\nsome text\n")
    for length in range(1, len(printed)):
        if length == first:
            assert len(outputs("host", printed[:length])) == 1
        else:
            with pytest.raises(ProbeError, match="cut off"):
                outputs("host", printed[:length])


def test_servers_are_ready_together_or_say_which_can_not_be(tmp_path: Path) -> None:
    need("iperf3")
    tool = Iperf3()

    def command(port: int) -> list[str]:
        return ["iperf3", "-s", "-1", "--forceflush", "-p", str(port)]

    async def main(ports: list[int], program: str) -> None:
        async with Sessions(fleet, owner("test")) as sessions:
            session = await sessions.session(REGION)
            commands = [[program, *command(port)[1:]] for port in ports]
            async with session.server(servers(commands), 30) as running:
                await all_ready(running, fleet[REGION], tool.name, tool.ready_line, len(ports))
                await running.stop(0)

    with (
        machines(tmp_path, [REGION]) as (fleet, _),
        socket.create_server(("::", 0), family=socket.AF_INET6) as taken,
    ):
        first = fleet[REGION].first_port
        free = list(range(first, first + 12))
        asyncio.run(main(free, "iperf3"))  # more than a connection has channels
        with pytest.raises(ProbeError) as busy:
            asyncio.run(main([*free[:2], taken.getsockname()[1]], "iperf3"))
        assert busy.value.cause == "busy"
        with pytest.raises(ProbeError) as missing:
            asyncio.run(main(free[:2], "no-iperf3"))
    assert missing.value.cause == "missing-tool"
