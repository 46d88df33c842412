"""The parts that questions of many transfers share (VMs: :mod:`planner.model.shared_resources`).

:mod:`.problem` has the figures of sites and links, :mod:`.fees` the fees of volumes on links,
:mod:`.drawn_times` the durations of a plan if links and VMs are slower or faster than expected, and
:mod:`.explanation` the common parts of answers.
"""
