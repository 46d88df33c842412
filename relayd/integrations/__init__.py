"""relayd inside engines that move data: a module for each, with an extra of its name.

:mod:`.shuffles` is what those that shuffle share: the partitions of a shuffle, each in a region.
"""
