"""Many transfers at once over shared VMs: rates, paths and VMs for every pair of a shuffle.

:func:`.recommendation.recommend_shuffle` answers a :class:`.request.ShuffleRequest` with a
:class:`.plan.ShufflePlan`. :mod:`.problem` turns the request and a network into matrices.
"""
