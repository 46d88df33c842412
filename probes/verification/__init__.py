"""Running a plan with real tools for a short time, and comparing."""
