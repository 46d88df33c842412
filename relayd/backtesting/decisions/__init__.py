"""``relayd bench-decisions``: how well planners decide, on open data that anybody can fetch."""
