"""``relayd report``: the samples of a store, analysed as measurement papers do."""
