"""Texts of answers for people: layout, figures, and blocks that several answers have."""
