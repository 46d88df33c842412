"""Whether to keep a plan in progress or to change it.

:func:`.recommendation.replan` answers a :class:`.request.ReplanRequest` with a
:class:`.plan.Replan`: it asks the question again for what is left, and compares. :mod:`.progress`
reads the plan in progress, and what is left of it as volumes on links.
"""
