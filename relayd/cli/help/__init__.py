"""Commands that help to use the others."""
