"""The dashboard: pages for people, of plain ES modules that ask the service's own API.

A page is a name, a title and a script (`pages`). ``files/`` has a folder for each page and one for
what they share; they are served as they are (`assets`). Charts are drawn
by uPlot and maps by d3-geo, both in ``files/vendor`` with their licenses.
"""
