"""The questions about the network, each behind a method of ``Wan``, and their answers."""
