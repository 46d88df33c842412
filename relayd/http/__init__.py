"""The recommendation service: the library's answers over HTTP.

`models` and the questions' specifications define requests and answers, `routes` handles each path,
`middleware` wraps the routes, `responses` encodes answers and problems, `description` documents all
of this, `campaigns` runs campaigns, and `server` holds the state and runs the service. Modules
import in this order: responses, server, `route`, routes and middleware, description, `server.app`.
"""
