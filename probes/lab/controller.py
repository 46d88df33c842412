"""Bringing labs up and down, and talking to those that run.

A lab is a keeper process and a folder of its own. The folder is made before anything is
started and removed after everything has ended, and every process of a lab has the lab's id in
its environment: both help to find the remains of an aborted lab.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from planner.model.errors import InputError, RelaydError
from probes.lab.linux import check_machine, start_time_of
from probes.lab.sites import processes
from probes.lab.topology import Topology

MARK = "RELAYD_LAB"
"""Environment variable that names the lab a process belongs to."""

DEFAULT_NAME = "lab"

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_UP_S, _DOWN_S = 60.0, 10.0


def labs_folder() -> Path:
    """Folder with one folder per lab; ``RELAYD_LAB_DIR`` in the environment names another."""
    if chosen := os.environ.get("RELAYD_LAB_DIR"):
        return Path(chosen).absolute()
    if os.geteuid() == 0:
        return Path("/run/relayd-labs")
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(runtime) / "relayd-labs"
    return Path(f"/var/tmp/relayd-labs-{os.getuid()}")  # noqa: S108 - made with mode 0700


class Lab:
    """A lab by its name, running or not.

    Attributes
    ----------
    folder : Path
        Has ``fleet.toml``, ``known_hosts``, ``id_ed25519`` and ``log`` while the lab is up.
    """

    def __init__(self, name: str = DEFAULT_NAME) -> None:
        if not _NAME.fullmatch(name):
            remedy = "Use up to 63 lower-case letters, digits, dots and dashes."
            raise InputError("--name", "is not a name for a lab", value=name, remedy=remedy)
        self.name = name
        self.folder = labs_folder() / name

    @property
    def fleet_file(self) -> Path:
        """The fleet file of the lab."""
        return self.folder / "fleet.toml"

    def is_up(self) -> bool:
        """Tell whether the lab runs."""
        record = self.record()
        return record is not None and _is_alive(record) and (self.folder / "control").exists()

    def topology(self) -> Topology:
        """Return the topology that the lab was brought up with."""
        self._must_be_up()
        return Topology.from_json((self.folder / "topology.json").read_text())

    def up(self, topology: Topology, *, ends_with_caller: bool = False) -> bool:
        """Bring the lab up; return False if it already was, with the same topology.

        Raises RelaydError if the machine lacks something, or the name is taken by a different lab.

        Parameters
        ----------
        topology : Topology
        ends_with_caller : bool
            Whether the lab is to go down when this process ends, however it does.
        """
        check_machine()
        with _labs_locked():
            if self.is_up():
                if (self.folder / "topology.json").read_text() == topology.to_json():
                    return False
                problem = "is taken by a lab with other sites or another profile"
                remedy = (
                    f"Take it down with `relayd measure lab down --name {self.name}`, or "
                    "give the new one another name."
                )
                raise InputError("--name", problem, value=self.name, remedy=remedy)
            self._remove()
            self.folder.mkdir(mode=0o700)
            (self.folder / "topology.json").write_text(topology.to_json())
            try:
                self._start_keeper(ends_with_caller)
            except BaseException:
                self._remove()
                raise
        return True

    def down(self) -> bool:
        """Take the lab down and remove all remains; return False if there was nothing."""
        if not labs_folder().exists():
            return False
        with _labs_locked():
            if not self.folder.exists():
                return False
            self._remove()
        return True

    def status(self) -> dict[str, Any]:
        """Ask the lab's keeper for its sites, links, counters and lateness."""
        return {"name": self.name, "fleet_file": str(self.fleet_file), **self._ask("status")}

    def set_host(self, region: str, settings: Mapping[str, str | float]) -> None:
        """Change behaviours of a host (:class:`~probes.lab.behaviours.HostBehaviour`)."""
        self._ask("set_host", region=region, settings=dict(settings))

    def set_link(
        self,
        source: str,
        destination: str,
        settings: Mapping[str, str | float],
        *,
        one_way: bool = False,
    ) -> None:
        """Change behaviours of a link (:class:`~probes.lab.behaviours.LinkBehaviour`)."""
        ends = {"source": source, "destination": destination}
        self._ask("set_link", **ends, settings=dict(settings), one_way=one_way)

    def clear(self) -> None:
        """Take back every behaviour that was set since the lab came up."""
        self._ask("clear")

    def command(self, region: str, arguments: Sequence[str]) -> list[str]:
        """Return the command line that runs a program in a site.

        It runs as root of the site, outside of any SSH session, and ends with the lab.
        """
        record, site = self._must_be_up(), self.topology().index(region)
        pid = self.status()["sites"][site]["pid"]
        enter = ["nsenter", "--target", str(pid), "--net", "--mount", "--uts", "--ipc", "--pid"]
        home = "/root"
        if os.geteuid():
            enter += [f"--user=/proc/{record['pid']}/ns/user"]
            enter += ["--preserve-credentials"]
            home = "/tmp"  # noqa: S108 - the site's own
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        environment = [f"HOME={home}", f"PATH={path}", f"{MARK}={record['id']}"]
        return [*enter, "--", "env", *environment, *arguments]

    def _start_keeper(self, ends_with_caller: bool) -> None:
        identity = uuid.uuid4().hex
        root = str(Path(__file__).resolve().parents[2])
        search = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"
        # A process with threads, such as numpy's, gets no user namespace of its own.
        own = {"PYTHONPATH": search, "PATH": path, MARK: identity, "OPENBLAS_NUM_THREADS": "1"}
        reader, writer = os.pipe()
        # Known before there is a process, so that no moment is without a trace.
        self._write_record({"id": identity})
        with (self.folder / "log").open("wb") as log:
            command = [sys.executable, "-m", "probes.lab.keeper", str(self.folder), str(writer)]
            keeper = subprocess.Popen(
                [*command, *(["bound"] if ends_with_caller else [])],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                pass_fds=[writer],
                env={**os.environ, **own},
            )
        os.close(writer)
        began = start_time_of(keeper.pid)
        self._write_record({"id": identity, "pid": keeper.pid, "start_time": began})
        with os.fdopen(reader, "rb") as said:
            message = said.read() if select.select([said], [], [], _UP_S)[0] else b""
        answer = json.loads(message) if message else {}
        if not answer.get("up"):
            keeper.kill()
            keeper.wait()
            log_text = (self.folder / "log").read_text(errors="replace").strip()
            reason = answer.get("error") or "it ended without a word"
            raise RelaydError(
                f"The lab did not come up: {reason}. Its log ends with:\n{log_text[-1500:]}"
            )
        # The keeper outlives this process, which does not wait for it.
        keeper.returncode = 0

    def _write_record(self, record: dict[str, Any]) -> None:
        new = self.folder / "lab.json.new"
        new.write_text(json.dumps(record))
        new.rename(self.folder / "lab.json")

    def record(self) -> dict[str, Any] | None:
        """Return what the lab wrote down of itself (id, pid, start_time), or None if nothing."""
        try:
            record = json.loads((self.folder / "lab.json").read_text())
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) and "id" in record else None

    def _must_be_up(self) -> dict[str, Any]:
        record = self.record()
        if record is None or not _is_alive(record):
            remedy = "`relayd measure lab up` starts one; `measure lab status` lists them."
            raise InputError("--name", "names no lab that is up", value=self.name, remedy=remedy)
        return record

    def _ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Have the keeper do something, and return its reply."""
        self._must_be_up()
        with socket.socket(socket.AF_UNIX) as control:
            try:
                control.connect(str(self.folder / "control"))
            except OSError as error:
                raise RelaydError(
                    f"The lab {self.name!r} does not answer ({error}). Take it down with "
                    f"`relayd measure lab down --name {self.name}` and start it again."
                ) from error
            control.sendall(json.dumps({"do": do, **arguments}).encode() + b"\n")
            with control.makefile("rb") as answer:
                reply: dict[str, Any] = json.loads(answer.readline() or b"{}")
        if wrong := reply.get("input_error"):
            raise InputError(**wrong)
        if "error" in reply:
            raise RelaydError(reply["error"])
        return reply

    def _remove(self) -> None:
        """End all processes of the lab, whatever state it is in, and remove its folder."""
        record = self.record()
        if record is not None:
            if _is_alive(record):
                with suppress(ProcessLookupError):
                    os.kill(record["pid"], signal.SIGTERM)
                deadline_s = time.monotonic() + _DOWN_S
                while _is_alive(record) and time.monotonic() < deadline_s:
                    time.sleep(0.005)
            _end_leftovers(record["id"])
        shutil.rmtree(self.folder, ignore_errors=True)


def labs() -> list[Lab]:
    """All labs of this user that have a folder, running or left over."""
    folder = labs_folder()
    if not folder.is_dir():
        return []
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    return [Lab(name) for name in names if _NAME.fullmatch(name)]


def _is_alive(record: dict[str, Any]) -> bool:
    pid = record.get("pid")
    return pid is not None and start_time_of(pid) == record["start_time"]


def _end_leftovers(identity: str) -> None:
    """Kill every process that has the lab's id in its environment."""
    mark = f"{MARK}={identity}".encode()

    def left() -> list[int]:
        marked = []
        for pid in processes():
            with suppress(OSError):
                if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    marked.append(pid)
        return [pid for pid in marked if pid != os.getpid()]

    deadline = time.monotonic() + _DOWN_S
    while (pids := left()) and time.monotonic() < deadline:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


@contextmanager
def _labs_locked() -> Iterator[None]:
    """Hold off other commands that bring labs up or down."""
    folder = labs_folder()
    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            if os.fstat(descriptor).st_uid != os.geteuid():
                raise RelaydError(f"{folder} belongs to someone else; set RELAYD_LAB_DIR.")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # The last lab that goes removes the folder, perhaps while we waited.
            if folder.exists() and os.path.samestat(os.fstat(descriptor), folder.stat()):
                try:
                    yield
                finally:
                    with suppress(OSError):  # other labs are there
                        folder.rmdir()
                return
        finally:
            os.close(descriptor)
