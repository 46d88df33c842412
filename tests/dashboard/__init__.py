"""The dashboard in a real browser, before a really running service."""
