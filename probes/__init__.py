"""How numbers are obtained: samples, importers that read them, estimates made of them."""
