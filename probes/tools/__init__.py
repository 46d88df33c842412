"""Measuring tools: one module each, behind one small interface (:mod:`probes.tools.interface`)."""
