"""The keeper of a lab: the one process that holds it, and with which it ends.

Started by :mod:`probes.lab.controller` as ``python -m probes.lab.keeper FOLDER DESCRIPTOR
[bound]``.
It makes the sites, forks the workers that carry their packets, serves SSH ports and a control
socket, and says on the descriptor when the lab is up or why it is not.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import pickle
import pwd
import resource
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

from planner.model.errors import InputError, RelaydError
from probes.lab import links
from probes.lab.behaviours import HANG
from probes.lab.conditions import Conditions
from probes.lab.counters import BIN_S, NAMES, Counters
from probes.lab.emulator import MESSAGE_BYTES, Worker
from probes.lab.forwarding import SshForward
from probes.lab.linux import (
    CLONE_NEWNET,
    become_root_of_new_user_namespace,
    die_with_parent,
    open_tun,
    set_namespace,
    start_time_of,
)
from probes.lab.sites import SiteProcess, make_keys, site_process, site_script, start_site
from probes.lab.topology import GOODPUT_SHARE, Topology, private_address, public_address

WORKERS = 2
"""Forked processes that carry packets; more than two gain nothing on two processors."""

_PAIRS_IN_A_MESSAGE = 200
_SSH_UP_S = 10.0


class Keeper:
    """Everything that a lab consists of while it runs.

    Parameters
    ----------
    folder : Path
        The lab's folder, with ``topology.json`` and ``lab.json`` in it.
    ready : int
        Descriptor to say on, once, that the lab is up or why it is not.
    is_bound : bool
        Whether the lab ends with the process that started it.
    """

    def __init__(self, folder: Path, ready: int, *, is_bound: bool) -> None:
        self.folder = folder
        self._is_bound = is_bound
        self._ready = ready
        self.conditions = Conditions(Topology.from_json((folder / "topology.json").read_text()))
        self.topology = self.conditions.topology
        self.began_s = time.time()
        self._user_id, self._group_id = os.geteuid(), os.getegid()
        self._user = pwd.getpwuid(self._user_id).pw_name
        self._processes: list[subprocess.Popen[bytes]] = []
        self._sites: list[SiteProcess] = []
        self._networks: list[int] = []
        self._devices: list[int] = []
        self._workers: list[tuple[int, socket.socket]] = []
        self._forwards: list[SshForward] = []
        self._one_change_at_a_time = asyncio.Lock()
        count = len(self.topology.sites)
        self._counters = Counters(count, min(WORKERS, count))

    def bring_up(self) -> None:
        """Make the sites and the network between them, and fork the workers."""
        count = len(self.topology.sites)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 16_384)), hard))
        # Bound before a user namespace is entered: there is no way back to this network.
        self._listeners = [
            socket.create_server(("127.0.0.1", 0), backlog=128) for _ in range(count)
        ]
        if self._user_id:
            become_root_of_new_user_namespace()
        if self._is_bound:  # after that: a change of credentials would take it back
            die_with_parent(signal.SIGTERM)
        names = [f"host_key_{i}" for i in range(count)]
        make_keys(self.folder, [*names, "id_ed25519"])
        authorized = (self.folder / "id_ed25519.pub").read_text()
        with (self.folder / "log").open("ab") as log:
            for site, name in zip(self.topology.sites, names, strict=True):
                key = (self.folder / name).read_text()
                script = site_script(site.region, key, authorized, self._user_id, self._group_id)
                self._processes.append(start_site(script, log))
        for index, process in enumerate(self._processes):
            self._sites.append(site_process(process))
            network = f"/proc/{self._sites[index].pid}/ns/net"
            self._networks.append(os.open(network, os.O_RDONLY | os.O_CLOEXEC))
            set_namespace(self._networks[index], CLONE_NEWNET)
            self._devices.append(open_tun(links.DEVICE))
            self._shape(index, "add")
        self._fork_workers()
        self._write_files(names)

    def _shape(self, index: int, verb: str = "change") -> None:
        """Apply the conditions of a site in its kernel's network."""
        set_namespace(self._networks[index], CLONE_NEWNET)
        conditions = self.conditions
        window, egress = conditions.largest_window_bytes(index), conditions.egress_mbps(index)
        links.apply_kernel_settings(egress, window, is_rootless=self._user_id != 0)
        links.apply_batch("ip", links.ip_batch(index, window, verb))
        shaping = links.shaping_batch(
            egress,
            verb,
            lasting_mbps=conditions.lasting_egress_mbps(index),
            bucket_bytes=conditions.hosts[index].burst_mb * 1e6,
        )
        links.apply_batch("tc", shaping)

    def _fork_workers(self) -> None:
        count, kinds = len(self.topology.sites), (private_address, public_address)
        addresses = {socket.inet_aton(kind(site)): site for site in range(count) for kind in kinds}
        workers = min(WORKERS, count)
        # Neighbours in order of rate go to different workers.
        by_rate = sorted(range(count), key=self.conditions.egress_mbps)
        for number in range(workers):
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            for end in (ours, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * MESSAGE_BYTES)
            pid = os.fork()
            if pid:
                theirs.close()
                self._workers.append((pid, ours))
                continue
            try:
                die_with_parent(signal.SIGKILL)
                os.close(self._ready)
                for inherited in (ours, *self._listeners, *(end for _, end in self._workers)):
                    inherited.close()
                sources = by_rate[number::workers]
                Worker(self._devices, addresses, self._counters, number, sources, theirs).run()
            except BaseException:  # noqa: BLE001 - a forked child must not return
                traceback.print_exc()
            finally:
                os._exit(0)

    def _write_files(self, names: Sequence[str]) -> None:
        known = ""
        text = f"# Sites of the lab {self.folder.name!r}, written by `relayd measure lab up`.\n"
        for index, (site, name) in enumerate(zip(self.topology.sites, names, strict=True)):
            port = self._listeners[index].getsockname()[1]
            private, public = private_address(index), public_address(index)
            public_key = self.folder / f"{name}.pub"
            kind, key = public_key.read_text().split()[:2]
            known += f"[127.0.0.1]:{port},{private},{public} {kind} {key}\n"
            public_key.unlink()
            (self.folder / name).unlink()
            host = {
                "region": site.region,
                "host": "127.0.0.1",
                "port": port,
                "user": self._user,
                "key": str(self.folder / "id_ed25519"),
                "known_hosts": str(self.folder / "known_hosts"),
                "vm_type": site.vm_type,
                "private_address": private,
                "public_address": public,
                "egress_mbps": round(site.egress_mbps * GOODPUT_SHARE, 3),
                "ingress_mbps": round(site.ingress_mbps * GOODPUT_SHARE, 3),
            }
            text += "\n[[host]]\n"
            for field, value in host.items():  # texts and numbers are alike in JSON and TOML
                text += f"{field} = {json.dumps(value, ensure_ascii=False)}\n"
        (self.folder / "known_hosts").write_text(known)
        (self.folder / "fleet.toml").write_text(text)

    async def serve(self) -> None:
        """Carry SSH connections and answer on the control socket until told to end."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, ended.set)
        self._forwards = [
            SshForward(listener, partial(_socket_in, network))
            for listener, network in zip(self._listeners, self._networks, strict=True)
        ]
        tasks = [asyncio.create_task(forward.serve()) for forward in self._forwards]
        everywhere = range(len(self._sites))
        await self._tell_workers(everywhere, self.conditions.pairs_of(everywhere))
        await asyncio.gather(*(_wait_for_sshd(network) for network in self._networks))
        control = str(self.folder / "control")
        server = await asyncio.start_unix_server(self._answer, control)
        gc.freeze()
        self.say({"up": True})
        await ended.wait()
        server.close()
        for task in tasks:
            task.cancel()

    def say(self, message: dict[str, Any]) -> None:
        """Report the outcome, once, to the process that started the keeper."""
        os.write(self._ready, json.dumps(message).encode() + b"\n")
        os.close(self._ready)

    def take_down(self) -> None:
        """End everything that belongs to the lab."""
        for pid, end in self._workers:
            end.close()
            os.kill(pid, signal.SIGKILL)
        for site in self._sites:
            if start_time_of(site.pid) == site.start_time:
                os.kill(site.pid, signal.SIGKILL)
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
        for pid, _ in self._workers:
            os.waitpid(pid, 0)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = json.loads(await reader.readline())
            async with self._one_change_at_a_time:
                reply = await self._do(request)
        except InputError as error:
            names = ("field", "problem", "value", "remedy")
            reply = {"input_error": {name: getattr(error, name) for name in names}}
        except RelaydError as error:
            reply = {"error": str(error)}
        except Exception as error:  # noqa: BLE001 - the lab goes on, and says what happened
            traceback.print_exc()
            reply = {"error": f"The lab's keeper failed: {error!r}; its log has more."}
        with suppress(ConnectionError):
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()
            writer.close()

    async def _do(self, request: dict[str, Any]) -> dict[str, Any]:
        match do := request.pop("do"):
            case "status":
                return self._status()
            case "set_host":
                sites = self.conditions.set_host(**request)
                await self._apply(sites, self.conditions.pairs_of(sites))
            case "set_link":
                pairs = self.conditions.set_link(**request)
                await self._apply({j for _, j in pairs}, pairs)
            case "clear":
                self.conditions.clear()
                everywhere = range(len(self.topology.sites))
                await self._apply(everywhere, self.conditions.pairs_of(everywhere))
            case _:
                raise RelaydError(f"The lab does not know how to {do}")
        return {}

    async def _apply(self, sites: Iterable[int], pairs: Sequence[tuple[int, int]]) -> None:
        """Apply the conditions of these sites and directions in kernel and workers."""
        sites = list(sites)
        for site in sites:
            self._forwards[site].set_state(self.conditions.hosts[site].state)
            hangs = self.conditions.hosts[site].ssh == HANG
            os.kill(self._sites[site].pid, signal.SIGSTOP if hangs else signal.SIGCONT)
            self._shape(site)
        await self._tell_workers(sites, pairs)

    async def _tell_workers(self, sites: Iterable[int], pairs: Sequence[tuple[int, int]]) -> None:
        """Send the conditions of sites and directions, and wait until they hold."""
        now, count = self.conditions, len(self.topology.sites)
        loop = asyncio.get_running_loop()
        ingress = {site: now.ingress_s_per_byte(site) for site in sites}
        for first in range(0, len(pairs) or 1, _PAIRS_IN_A_MESSAGE):
            directions = [
                (
                    i * count + j,
                    now.delay_s(i, j),
                    j * count + i,
                    now.window_bytes(j, i),
                    now.impairment(i, j),
                )
                for i, j in pairs[first : first + _PAIRS_IN_A_MESSAGE]
            ]
            message = pickle.dumps((ingress, directions))
            for _, end in self._workers:
                end.setblocking(False)
                await loop.sock_sendall(end, message)
                if await loop.sock_recv(end, 16) != b"done":
                    raise RelaydError("A worker of the lab has ended. Start the lab again.")

    def _status(self) -> dict[str, Any]:
        sites = []
        sent, received = self._counters.sums("sent"), self._counters.sums("received")
        for index, site in enumerate(self.topology.sites):
            entry = {name: value for name, value in asdict(site).items() if value != float("inf")}
            entry |= {
                "pid": self._sites[index].pid,
                "alive": self._processes[index].poll() is None,
                "port": self._listeners[index].getsockname()[1],
                "private_address": private_address(index),
                "public_address": public_address(index),
                "sent_bytes": sent[index],
                "received_bytes": received[index],
                "behaviour": self.conditions.hosts[index].changes(),
            }
            sites.append(entry)
        changed = [
            {"source": src.region, "destination": dst.region, **link.changes()}
            for (i, src), (j, dst) in permutations(enumerate(self.topology.sites), 2)
            if (link := self.conditions.link(i, j)).changes()
        ]
        return {
            "profile": self.topology.profile,
            "scale": self.topology.scale,
            "up_since_s": self.began_s,
            "monotonic_s": time.monotonic(),
            "workers_alive": [start_time_of(pid) is not None for pid, _ in self._workers],
            "sites": sites,
            "links": changed,
            "counters": dict(zip(NAMES, self._counters.sums("totals"), strict=True)),
            "lateness": {"bin_ms": BIN_S * 1e3, "counts": self._counters.sums("lateness")},
        }


def _socket_in(network: int) -> socket.socket:
    """Make a TCP socket in a network namespace."""
    set_namespace(network, CLONE_NEWNET)
    return socket.socket()


async def _wait_for_sshd(network: int) -> None:
    loop = asyncio.get_running_loop()
    deadline = time.monotonic() + _SSH_UP_S
    while True:
        try:
            with _socket_in(network) as probe:
                probe.setblocking(False)
                await loop.sock_connect(probe, ("127.0.0.1", 22))
                if (await loop.sock_recv(probe, 16)).startswith(b"SSH-"):
                    return
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise RelaydError("The sshd of a site does not answer")
        await asyncio.sleep(0.01)


def main() -> None:
    """Hold a lab until told to end."""
    ready = int(sys.argv[2])
    os.set_inheritable(ready, False)
    # The signal of an impatient terminal during bring_up ends it like any other error.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    keeper = Keeper(Path(sys.argv[1]), ready, is_bound=sys.argv[3:] == ["bound"])
    try:
        keeper.bring_up()
        asyncio.run(keeper.serve())
    except (RelaydError, OSError) as error:
        traceback.print_exc()
        keeper.say({"error": str(error)})
    finally:
        keeper.take_down()


if __name__ == "__main__":
    main()
