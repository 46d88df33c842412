"""Commands that measure: fleet, probe, verify, watch and the lab."""
