"""What the store records of links: their states, events, series and shifts of level."""
