"""What each path does: one module a resource, and the table of all of them."""
