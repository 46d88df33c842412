"""A service of several processes: their parent, and what they share and tell each other."""
