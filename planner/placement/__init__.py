"""Places to compute: the regions that reduce, and the VM of each task.

:func:`.reduce.recommend_reduce` and :func:`.tasks.recommend_tasks` answer the two requests of
:mod:`.request` with the placements of :mod:`.plan`.
"""
