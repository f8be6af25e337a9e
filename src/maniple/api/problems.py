"""The refusals that the OpenAPI document names for each route."""

from typing import Any

from maniple.api.schemas import Problem

_WORDS = {
    400: "The body cannot be read",
    401: "No API key, or none that is known",
    404: "There is none, or it belongs to another key",
    406: "None of the forms that are accepted can be given",
    409: "Not possible as it stands now",
    413: "The body is too large",
    422: "The request does not fit",
    429: "Too many runs, or nothing left of the key's day; see Retry-After",
    503: "Stopping, or the store cannot be used; see Retry-After",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of a route that may be refused so; every keyed route has some of them anyway."""
    every = (400, 401, 413, 422, 503)
    return {status: {"model": Problem, "description": _WORDS[status]} for status in (*every, *statuses)}
