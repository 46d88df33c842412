"""Samples of a store or a data set, as replays and reports read them."""
