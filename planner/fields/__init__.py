"""Fields of questions: what they take, declared once, from which every surface is derived."""
