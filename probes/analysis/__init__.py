"""What series of measurements say: steady rates, ramps, caps, when to stop, whether to move."""
