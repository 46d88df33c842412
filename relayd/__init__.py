"""How people and programs reach the planner: store, library face and command line."""
