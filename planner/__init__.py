"""The decision core: models, graphs and optimisation. No I/O, no clock, no hidden randomness."""
