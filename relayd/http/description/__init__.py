"""The service's description of itself: OpenAPI and the page made from it."""
