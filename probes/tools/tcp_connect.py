"""Round-trip time of TCP's handshake, for where ICMP is filtered (as on Azure).

A refusal takes a round trip as well as an acceptance, so nothing needs to listen at the port; but
it must not be filtered. The host needs Python 3, which images of all clouds have.
"""

from __future__ import annotations

import json
from statistics import median, pstdev

from probes.fleet.failures import ProbeError
from probes.fleet.session import Output
from probes.importers import limits
from probes.samples import Metric, Sample
from probes.tools.interface import Result, Test

WAIT_S = 3.0
HANDSHAKE_GB = 4 * 66e-9

_PROGRAM = """\
import socket, sys, time
address, port, count, wait_s = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
family, kind, _, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
silent = 0
for _ in range(count):
    s = socket.socket(family, kind)
    s.settimeout(wait_s)
    began = time.perf_counter()
    try:
        s.connect(place)
    except ConnectionRefusedError:
        pass
    except TimeoutError:
        silent += 1
        print('timeout', flush=True)
        if silent == 2:
            break
        continue
    except OSError as error:
        print('error', error.strerror, flush=True)
        break
    finally:
        ended = time.perf_counter()
        s.close()
    print(f'{(ended - began) * 1e3:.4f}', flush=True)
    time.sleep(0.05)
"""


class TcpConnect:
    """The tool."""

    name = "python3"
    client_at_dst = False

    def server(self, test: Test) -> None:
        """Return None: a refusal is an answer too."""

    def ready_line(self) -> bytes:
        """Return nothing: there is no server."""
        return b""

    def command(self, test: Test) -> list[str]:
        """Return the program with its arguments; isolated from the host's own modules."""
        arguments = [test.address, str(test.port), str(self._count(test)), str(WAIT_S)]
        return ["python3", "-I", "-c", _PROGRAM, *arguments]

    def limit_s(self, test: Test) -> float:
        """Return the longest duration, where nothing answers."""
        return 2 * WAIT_S + self._count(test) * 1.0 + 5

    def _count(self, test: Test) -> int:
        return max(5, round(test.duration_s / 0.2))

    def read(self, output: Output, test: Test, measured_at_s: float) -> Result:
        """Read the times; see :class:`~probes.tools.interface.Tool`."""
        times_ms: list[float] = []
        lost = 0
        for line in output.stdout.decode(errors="replace").split("\n"):
            if line.startswith("error"):
                raise ProbeError(test.src.name, "filtered", f"no TCP connection: {line[6:80]}")
            if line == "timeout":
                lost += 1
            elif line and (value := limits.number(line)) is not None:
                times_ms.append(value)
        if lost and not times_ms:
            raise ProbeError(
                test.src.name,
                "filtered",
                f"neither ping nor TCP port {test.port} of {test.dst.name} answers",
                "Let ICMP or the probe ports through between the fleet's hosts.",
            )
        if output.status != 0 or len(times_ms) < 3:
            words = output.last_error_line or "too few answers"
            raise ProbeError(test.src.name, "tool", f"the TCP round-trip test failed: {words}")
        later = times_ms[1:]
        rtt_ms = median(later)
        if problem := limits.fault("rtt_ms", rtt_ms, "the round-trip time"):
            raise ProbeError(test.src.name, "output", problem)
        detail = json.dumps(
            {
                "first_ms": times_ms[0],
                "median_of": len(later),
                "min_ms": min(later),
                "max_ms": max(later),
                "port": test.port,
            }
        )
        figures: tuple[tuple[Metric, float], ...] = (
            ("rtt_ms", rtt_ms),
            ("jitter_ms", pstdev(later)),
        )
        found = [
            Sample(
                test.src.region,
                test.dst.region,
                metric,
                value,
                measured_at_s,
                "tcp-connect",
                src_vm=test.src.vm_type,
                dst_vm=test.dst.vm_type,
                detail=detail,
            )
            for metric, value in figures
        ]
        settled = tuple(test.settled(sample, measured_at_s) for sample in found)
        return Result(settled, (len(times_ms) + lost) * HANDSHAKE_GB)
