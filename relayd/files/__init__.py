"""Files that people hand to a question: demands, rows of named fields, and earlier plans."""
