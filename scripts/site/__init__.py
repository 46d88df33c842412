"""The documentation site: ``make docs``. Its pages are docs/, and a reference made of the code."""
