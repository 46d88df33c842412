"""What notebooks show besides tables: charts of answers and matrices."""
