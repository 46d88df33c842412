"""An example of a distribution that extends relayd."""
