"""An example of a distribution that extends relayd: a question, an importer and an emitter."""
