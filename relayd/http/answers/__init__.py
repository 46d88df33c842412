"""What worker processes answer; none of it needs the web server, which takes long to load."""
