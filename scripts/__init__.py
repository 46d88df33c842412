"""Things that keep the repository: run with ``python -m scripts.NAME``."""
