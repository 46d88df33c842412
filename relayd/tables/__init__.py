"""What is known as tables: links as rows, and one figure for every pair of regions."""
