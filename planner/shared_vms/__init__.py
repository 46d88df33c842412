"""What questions of many transfers share beside VMs (:mod:`planner.model.shared_resources`).

:mod:`.problem` has the figures of sites and links, :mod:`.fees` what volumes on links cost,
:mod:`.drawn_times` how long a plan takes where links and VMs are slower or faster than expected,
and :mod:`.explanation` what answers say alike.
"""
