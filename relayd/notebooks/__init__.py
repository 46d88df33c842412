"""Charts of answers and matrices for notebooks."""
