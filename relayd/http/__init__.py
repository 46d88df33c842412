"""The recommendation service: what the library answers, over HTTP.

``models`` say what requests and answers look like, ``routes`` what each path does, ``openapi``
writes both down, ``app`` puts them together and ``serving`` runs them.
"""
