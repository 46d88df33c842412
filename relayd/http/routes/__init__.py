"""Handlers and models of all paths, one module a resource."""
