"""Transfers with start times, deadlines and priorities over shared VMs.

:func:`.recommendation.recommend_schedule` answers a :class:`.request.ScheduleRequest` with a
:class:`.plan.SchedulePlan`. :mod:`.problem` cuts time into slots, :mod:`.slots` has the linear
program over them, :mod:`.admission` decides which transfers can be promised their deadline,
:mod:`.earlier` and :mod:`.best_effort` use what capacity is left, and :mod:`.usage` adds up VMs and
cost. :mod:`.remedies` says what would admit a refused transfer; :mod:`.progress` and
:mod:`.document` continue an existing schedule.
"""
