"""Commands that list, import, export and analyse what has been measured."""
