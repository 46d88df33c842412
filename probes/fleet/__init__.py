"""The fleet: its file, its hosts and addresses, and SSH connections that leave nothing behind."""
