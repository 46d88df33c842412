"""Liveness: cheap probes of every link, and the state machine that judges links by them."""
