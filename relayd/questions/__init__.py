"""What may be asked of the network: one module a question, each behind a method of ``Wan``."""
