"""Real engines that use what relayd decides; each runs on one machine."""
