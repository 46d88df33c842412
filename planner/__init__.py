"""The decision core: models, graphs and optimisation. Pure: no I/O, no clock, no hidden randomness."""
