"""Looking after a store: finding damage, copies, and the way back to an older schema."""
