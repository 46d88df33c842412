"""One question has one answer, whoever is asked."""
