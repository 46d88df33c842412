"""Advice to keep a plan in progress or to change it.

:func:`.recommendation.replan` answers a :class:`.request.ReplanRequest` with a
:class:`.plan.Replan`: it plans the remaining volume again, and compares. :mod:`.progress` reads the
plan in progress and its remaining volumes on links.
"""
