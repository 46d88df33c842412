"""The running service: its settings, state, workers and background tasks."""
