"""``relayd study backtest``: replays stored history, on this machine or on a Dask cluster.

Not ``backtest``, because :func:`relayd.backtest` is the function that users call.
"""
