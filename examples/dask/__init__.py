"""Dask distributed: reduce where the wide-area network lets it end soonest."""
