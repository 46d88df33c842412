"""What to run: plans as scripts and configurations of the tools that people use.

Pure: a plan in, text out. Nothing is run, and no address is looked up.
"""
