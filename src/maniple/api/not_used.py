"""What of a request has no effect, and how the answer says so."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute

from maniple.api.requests import RUN_OPTIONS, ClientRequest, TeamRequest
from maniple.runs import AcceptedRun
from maniple.text import fix_surrogates, shorten

_SHOWN_NAMES = 50
_NAME_CHARACTERS = 100


def name_unused_options(asked: TeamRequest, accepted: AcceptedRun) -> list[str]:
    """Return what of a request has no effect: unknown keys of functions, or all options.

    All of them if it became an answer or a message to a run. One with its default value asks for nothing.
    """
    if accepted.is_new:
        return asked.name_unknown_keys() if isinstance(asked, ClientRequest) else []
    fields = type(asked).model_fields
    return [name for name in RUN_OPTIONS if getattr(asked, name) not in (None, fields[name].default)]


class QueryNamingRoute(APIRoute):
    """A route whose answer names the query parameters that it does not know."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with the header of `describe_not_used` for unknown parameters."""
        handle = super().get_route_handler()
        fields = get_flat_params(self.dependant)
        known = {field.alias for field in fields if isinstance(field.field_info, Query)}

        async def handle_and_name(request: Request) -> Response:
            response = await handle(request)
            unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
            for header, names in describe_not_used(unknown).items():
                before = response.headers.get(header)
                response.headers[header] = f"{before}, {names}" if before else names
            return response

        return handle_and_name


def describe_not_used(names: Sequence[str]) -> dict[str, str]:
    """Return the header that names the fields of a request that have no effect, percent-encoded."""
    if not names:
        return {}
    shown = (fix_surrogates(shorten(name, _NAME_CHARACTERS)) for name in names[:_SHOWN_NAMES])
    # A header that began or ended with a space would end the connection: the name "" is shown as such.
    return {"x-maniple-not-used": ", ".join(quote(name, safe="[]") or '""' for name in shown)}
