"""Leased interconnects, and what they make of a transfer."""
