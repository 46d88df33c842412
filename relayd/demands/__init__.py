"""Demands out of what people have: bills, logs of engines, and tables and networks of others."""
