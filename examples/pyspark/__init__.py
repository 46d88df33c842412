"""Spark: partitions as large as the wide-area network of their region allows."""
