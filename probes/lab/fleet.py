"""The fleet file of a lab: its sites as hosts that are reached like real VMs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FleetHost:
    """One ``[[host]]`` entry of a fleet file.

    Attributes
    ----------
    region : str
    host, port, user : str, int, str
        Where and as whom to log in over SSH.
    key, known_hosts : str
        Paths of the private key and of the file with the host's key.
    vm_type : str
        What the machine is, or ``""``.
    private_address, public_address : str
        What other hosts reach it by.
    egress_mbps, ingress_mbps : float
        What the VM can send and take, in Mbit/s of payload.
    """

    region: str
    host: str
    port: int
    user: str
    key: str
    known_hosts: str
    vm_type: str
    private_address: str
    public_address: str
    egress_mbps: float
    ingress_mbps: float


def fleet_toml(hosts: list[FleetHost], comment: str) -> str:
    """Write a fleet file."""
    blocks = [f"# {comment}\n"]
    for host in hosts:
        lines = [f"{name} = {_toml(value)}" for name, value in asdict(host).items()]
        blocks.append("\n".join(["[[host]]", *lines, ""]))
    return "\n".join(blocks)


def _toml(value: Any) -> str:
    if isinstance(value, int | float):
        return str(value)
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
