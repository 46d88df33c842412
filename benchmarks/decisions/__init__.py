"""How well planners decide, on open data that anybody can fetch."""
