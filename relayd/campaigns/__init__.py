"""Campaigns and verifications on a store: forecast, run, report by events, keep the results."""
