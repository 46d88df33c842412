"""What notebooks show beside tables: charts of answers and matrices."""
