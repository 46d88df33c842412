"""The fleet: which VMs there are, how they are reached, and whether they are fit to measure."""
