"""One series of a link in time: patterns, memory, forecasts, levels, occurrences."""
