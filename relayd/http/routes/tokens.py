"""``/v1/token`` and ``/v1/tokens``: who may do what, without secrets."""

from __future__ import annotations

from aiohttp import web

from relayd.http.models.service import TOKEN_ANSWER, TOKENS
from relayd.http.responses import document_response
from relayd.http.route import RequestContext, route
from relayd.store.samples.ingest import source_of_token
from relayd.store.samples.reported_series import series_by_source
from relayd.store.tokens import SCOPES, Tokens


@route("GET", "/v1/token", "read", answer=TOKEN_ANSWER)
async def get_token(context: RequestContext) -> web.Response:
    """Show the caller's token.

    Its name, scopes and limits, never the token itself.
    """
    service = context.service
    token = service.access.token(context.request) if service.access.needs_tokens else None
    content = {
        "token": token.metadata() if token else None,
        "scopes": [scope for scope in SCOPES if token is None or token.may(scope)],
    }
    return document_response(service.current.snapshot, content)


@route("GET", "/v1/tokens", "admin", answer=TOKENS)
async def list_tokens(context: RequestContext) -> web.Response:
    """List all tokens.

    Names, scopes, limits and when they were used, never a token itself. Tokens are made and
    revoked by `relayd token` on the store.
    """
    service = context.service
    tokens, series = await service.store.read(
        lambda store: (Tokens(store.database).list(), series_by_source(store.database))
    )
    used = service.access.used()  # which the store has not, or not yet
    content = {
        "tokens": [
            {
                **token.metadata(),
                "last_used_at_s": used.get(token.id, token.last_used_at_s),
                "series": series.get(source_of_token(token.name), 0),
            }
            for token in tokens
        ],
        "requests_per_s": service.settings.requests_per_s,
        "max_series": service.settings.max_series,
    }
    return document_response(service.current.snapshot, content)
