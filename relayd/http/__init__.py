"""The recommendation service: the library's answers over HTTP.

`routes` answers each path by `route`, which reads requests and sends answers; `service` holds the
state and the background tasks; `app` puts access, log and errors around them; `description`
documents all of it; `serving` runs it.
"""
