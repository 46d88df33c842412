"""One volume from one region to another: direct, through a relay, or split over both.

:func:`.recommendation.recommend` answers a :class:`.request.TransferRequest` with a
:class:`.plan.Plan`. :mod:`.problem` states what is solved, :mod:`.optimum` solves it exactly over
any number of relays and VMs. :mod:`.search` finds the options and takes that of least expected
regret (:mod:`.options`); :mod:`.decision` settles the number of VMs. :mod:`.wording`,
:mod:`.advice` and :mod:`.readings` say why, what would help, and what is taken for granted.
:mod:`.all_pairs` decides for every pair of regions at once.
"""
