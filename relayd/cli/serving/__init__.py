"""Commands that run the service and manage its tokens."""
