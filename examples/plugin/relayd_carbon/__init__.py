"""An example of a distribution that extends relayd: a question and an importer."""
