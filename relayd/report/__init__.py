"""``relayd report``: what the samples show, analysed as measurement papers do."""
