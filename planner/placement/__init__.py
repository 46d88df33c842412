"""Where to compute: in which regions to reduce, and on which VM to run which task.

:func:`.reduce.recommend_reduce` and :func:`.tasks.recommend_tasks` answer the two requests of
:mod:`.request` with the placements of :mod:`.plan`.
"""
