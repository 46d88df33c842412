"""What questions of many transfers share beside VMs: how sure their times are, and their fees.

:mod:`planner.model.shared_resources` says what VMs share. :mod:`.drawn_times` says how long a plan
takes where links and VMs are slower or faster than expected.
"""
