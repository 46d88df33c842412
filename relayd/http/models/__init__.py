"""What requests and answers look like: one module a resource, the single source of the API.

Requests are pydantic models. Answers are the very dataclasses that the library returns wherever
there is one, so that the documents of both faces can't differ.
"""
