"""Which addresses may be opened, and what they are when they are told by halves."""

import ipaddress
import re
from urllib.parse import urlsplit

from maniple.egress import EgressResolver
from maniple.errors import FetchError

# A name with a dot, this machine or an IP address, and perhaps a port: no scheme such as `javascript:1`.
_HOST = re.compile(r"(localhost|\[[0-9a-f:.]+\]|[\w-]+(?:\.[\w-]+)+\.?)(?::(\d+))?(?=[/?#]|$)", re.IGNORECASE)


def completed(url: str) -> str:
    """Return the address with the scheme that was left out, as it is most likely meant.

    That is http for this machine, IP addresses and ports other than 443, https for all others.
    """
    url = url.strip()
    host = _HOST.match(url)
    if host is None:
        return url
    name, port = host.groups()
    is_plain = port not in (None, "443") or (port is None and _is_numeric_or_local(name))
    return f"http://{url}" if is_plain else f"https://{url}"


def _is_numeric_or_local(host: str) -> bool:
    if f".{host.lower()}".endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


async def require_public(url: str, resolve: EgressResolver) -> None:
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
