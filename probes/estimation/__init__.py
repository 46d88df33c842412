"""From samples to a graph: the throughput of each link, its bounds, and its origin.

- Round-trip time (:mod:`.measurements`): the median of a link's pings; else of the opposite
  direction (routes are nearly symmetric); else of other clouds' pings between the same two
  cities; else the backbone model.
- One flow: the median of its steady values; else ``window / RTT`` with the
  receiver's window calibrated by measured flows into it, else by those into VMs of its type.
- VM caps (:mod:`.sites`): the median of one-to-many and many-to-one probes; else those of VMs of
  the same type.
- Aggregate (:mod:`.laws`): the median of steady values with enough
  connections; else the providers' law, shifted by measurements between those providers at such
  distances, under the VMs' caps.

All links are estimated at once, on arrays, from samples that still count
(:mod:`.current_samples`, :mod:`.link_samples`).

A measured link always beats an inferred one, and that the baseline. Bounds come from errors seen
on real clouds and from the spread of repeated samples (:mod:`.groups`).
"""

from probes.estimation.estimator import Estimator

__all__ = ["Estimator"]
