"""Files that Skyplane's profiler writes."""
