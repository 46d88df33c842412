"""Measuring tools: their commands, servers and output, host checks, and installing them."""
