"""The dashboard: pages for people, of plain ES modules that ask the service's own API.

A page is a name, a title and a script (`pages`); what it loads stands in ``files/`` and is served
as it is (`assets`). Charts are drawn by Vega, whose bundle comes from a wheel (`charts`).
"""
