"""Send invalid input for minutes: over HTTP, in files, and to the pages and event streams.

``make fuzz MINUTES=30``; each part sends until its time is up, and reports what it sent, answers of
5xx, tracebacks in the log, and memory at start and end.
"""
