"""The throughput of one TCP flow, direct and through relays that split it.

:func:`.prediction.predict` answers from direct tests alone; :mod:`.flow_tests` learns windows and
caps of hosts from them.
"""
