"""Whether to keep a plan in progress or to change it.

:func:`.recommendation.replan` answers a :class:`.request.ReplanRequest` with a
:class:`.plan.Replan`. :mod:`.progress` reads the plan in progress, :mod:`.remaining` holds what is
left of it as volumes on links, and :mod:`.options` projects keeping and changing it.
"""
