"""How numbers are obtained: samples, importers and estimates."""
