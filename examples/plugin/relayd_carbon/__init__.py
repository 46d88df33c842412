"""A plug-in of relayd: an importer of a made-up tool."""
