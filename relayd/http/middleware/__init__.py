"""What happens around each request: access, limits, reading bodies, headers, logs."""
