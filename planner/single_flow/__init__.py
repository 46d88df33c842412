"""Single flow."""
