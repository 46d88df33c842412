"""The catalogue: TOML files of regions, VM types and prices, loaded, checked and cached."""
