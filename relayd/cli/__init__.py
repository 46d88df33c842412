"""The command line: one module a group of commands, loaded when it is asked for."""
