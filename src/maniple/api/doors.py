"""How the OpenAPI document says that a route needs an API key; the gate itself is in `auth`."""

from fastapi import APIRouter, Security
from fastapi.security import APIKeyHeader, HTTPBearer

_KEY = APIKeyHeader(name="X-API-Key", scheme_name="ApiKey", auto_error=False)
_BEARER = HTTPBearer(scheme_name="Bearer", auto_error=False)


def keyed_router(tag: str) -> APIRouter:
    """Return a router whose routes need a key wherever keys exist."""
    return APIRouter(tags=[tag], dependencies=[Security(_KEY), Security(_BEARER)])
