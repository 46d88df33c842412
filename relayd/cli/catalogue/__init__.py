"""``relayd data catalogue``: what prices are in force, and newer ones."""
