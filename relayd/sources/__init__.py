"""What is known: `Wan` on a network that is given, of a store, or a copy of a service's."""
