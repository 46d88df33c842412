"""The search over numbers of VMs: its programs, its tree, and what it looks for."""
