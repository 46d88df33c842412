"""How sure figures of transfers are, and plans compared with what they share."""
