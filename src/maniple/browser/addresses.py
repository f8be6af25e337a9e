"""Which addresses may be opened."""

from urllib.parse import urlsplit

from maniple.egress import Resolve
from maniple.errors import FetchError


async def require_public(url: str, resolve: Resolve) -> None:
    """Say why the page at `url` may not be opened, where the browser itself could not say it.

    Raises:
        FetchError: it is no http or https address, or `resolve` refuses its host.
    """
    if not url.lower().startswith(("http://", "https://")):
        raise FetchError(f"{url[:200]} is not a web address; it must start with http:// or https://.")
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise FetchError(f"{url} is not a valid address: {error}.") from error
    if not parts.hostname:
        raise FetchError(f"{url} names no host; write the whole address.")
    await resolve(parts.hostname, port)
