"""Links whose rate falls during a transfer."""
