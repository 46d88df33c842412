"""Mathematics without regions, prices or requests.

:mod:`.simplex` solves the small programs of one transfer; :mod:`.column_generation` routes many
demands over one-hop paths; :mod:`.max_min_fill` raises rates while room is left; :mod:`.steiner`
finds least trees; :mod:`.linear_solver` loads OR-Tools.
"""
