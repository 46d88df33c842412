"""Quality of planners' decisions, on open data."""
