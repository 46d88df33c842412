"""Commands and their options, by family. Handlers are imported only when they run."""
