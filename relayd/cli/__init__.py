"""The command line: one room for each group of commands, whose modules load when they run."""
