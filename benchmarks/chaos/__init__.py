"""Services, importers and databases killed and stopped at random moments: ``make chaos``."""
