"""``relayd backtest``: stored history replayed, on this machine or on a cluster."""
