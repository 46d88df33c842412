"""One volume from one region to another: direct, through a relay, or split over both.

:func:`.recommendation.recommend` answers a :class:`.request.TransferRequest` with a
:class:`.plan.Plan`. :mod:`.problem` states what is solved, :mod:`.optimum` solves it exactly over
any number of relays and VMs, and :mod:`.single_path` over one path in closed form.
:mod:`.decision` weighs a relay's certain gain against the margin. :mod:`.explanation`,
:mod:`.bottlenecks`, :mod:`.advice` and :mod:`.infeasibility` say why, what limits the plan, and
what would help. :mod:`.all_pairs` decides for every pair of regions at once; :mod:`.reference`
states the problem through OR-Tools, for tests.
"""
