"""Commands that ask questions, from their specification to the printed answer."""
