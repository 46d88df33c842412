"""Plans as scripts and configurations of the tools that people already use.

A plan goes in and text comes out: nothing is run, and no address is looked up. Not ``emit``,
because :func:`relayd.emit` is the function that users call.
"""
