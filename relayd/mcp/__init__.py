"""Questions as tools of assistants, by the Model Context Protocol (modelcontextprotocol.io).

:mod:`.tools` makes a tool of each question, and a few that look things up; all of them only read.
:mod:`.serving` offers them over a program's own input and output, or over HTTP on this machine.
"""
