"""All links at once: samples as a table, groups of them, and what is estimated as arrays."""
