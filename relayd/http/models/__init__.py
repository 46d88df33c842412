"""Models of requests and responses: one module per resource.

Requests are pydantic models; those of questions are specified in the planner. Responses are the
dataclasses that the library returns wherever there is one, so that the two can't differ.
"""
