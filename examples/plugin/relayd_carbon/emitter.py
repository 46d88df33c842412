"""An emitter: a plan as the job file of Mover, a made-up tool that copies between VMs."""

from __future__ import annotations

from relayd.emitting.emitter import Emitter
from relayd.emitting.lanes import Emission
from relayd.emitting.text import header, lane_words


def job(emission: Emission) -> str:
    """Return a job of Mover, with a section for each lane; unknown addresses are ``$variables``."""
    text = header(emission, "A job of Mover", [lane_words(lane) for lane in emission.lanes])
    for lane in emission.lanes:
        hops = " ".join(vm.address or f"${vm.variable}" for vm in lane.vms)
        text += f"\n[lane {lane.number}]\nhops = {hops}\nport = {emission.port_of(lane)}\n"
        text += f"streams = {lane.connections}\nshare = {lane.share:.6g}\n"
    return text


MOVER = Emitter("mover", "a job of Mover", job)
