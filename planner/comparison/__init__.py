"""Where to run what sends to, or fetches from, given regions: candidates ranked."""
