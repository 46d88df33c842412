"""Makes snapshots from samples, and says what each of their figures rests on."""
