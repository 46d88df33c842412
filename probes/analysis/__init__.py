"""Analyses of measurement series: steady rates, ramps, caps, level shifts, periods, VM types."""
