"""Transfers with start times, deadlines and priorities over shared VMs.

:func:`.recommendation.recommend_schedule` answers a :class:`.request.ScheduleRequest` with a
:class:`.plan.SchedulePlan`. :mod:`.problem` cuts time into slots, :mod:`.program` is the linear
program over them, :mod:`.admission` decides which transfers can be promised their deadline and what
would admit the others, :mod:`.recommendation` uses what capacity is left, and :mod:`.usage` adds up
VMs, storage and cost.
"""
