"""Speed, side by side with references in the same run; ``python -m benchmarks`` runs them all."""
