"""One volume from one region to several, sent over trees of links.

:func:`.recommendation.recommend_broadcast` answers a :class:`.request.BroadcastRequest` with a
:class:`.plan.BroadcastPlan`. :mod:`.problem` turns the request and a network into matrices,
:mod:`.packing` divides the volume among trees, and :mod:`.search` finds the best and proves how
good it is.
"""
