"""Normalisation of web addresses, so that two spellings of one page are equal."""

import re
from functools import lru_cache
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urldefrag, urlsplit

TRACKING = re.compile(
    r"(?:utm_\w+|gclid|dclid|fbclid|ttclid|twclid|msclkid|yclid|igshid|mc_[ce]id|_ga|ref_src|spm)",
    re.IGNORECASE,
)
"""Query parameters that track readers and do not select a page."""


URL_CHARACTERS = 4_000
"""Longer addresses are not stored."""
_OWN_HOSTS = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})


def without_fragment(url: str) -> str:
    """Return an address without its `#part`."""
    return urldefrag(url.strip()).url if "#" in url else url.strip()


def local_port(url: str) -> int:
    """Return the port of an address on this machine; 0 for other hosts and for invalid addresses."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return 0
    return port if (parts.hostname or "").casefold() in _OWN_HOSTS else 0


def is_host_only(url: str) -> bool:
    """Whether an address has neither a path nor a query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.path in ("", "/") and not parts.query


def comparable_url(url: str) -> str:
    """Return a form of an address that is equal for all common spellings of one page.

    These are ignored: `http` or `https` and their default ports, `www.`, the letter case of the host, the
    fragment, slashes at the end of the path, percent encoding, and tracking parameters. The letter case of
    the path and the order of the other parameters are significant. An invalid address, or one longer than
    `URL_CHARACTERS`, is returned unchanged.
    """
    return _comparable(url) if len(url) <= URL_CHARACTERS else url.strip()


@lru_cache(maxsize=4096)
def _comparable(url: str) -> str:
    try:
        parts = urlsplit(without_fragment(url))
        return _form(parts) if parts.hostname else url.strip()
    except ValueError:
        return url.strip()


def _form(parts: SplitResult) -> str:
    scheme = "web" if parts.scheme.lower() in ("http", "https") else parts.scheme.lower()
    host = _ascii((parts.hostname or "").rstrip(".")).removeprefix("www.")
    port = "" if parts.port in (None, 80, 443) else f":{parts.port}"
    # `quote` after `unquote` gives each character one spelling, and leaves no raw `?` or `#` in the path.
    path = quote(unquote(parts.path).rstrip("/"))
    parameters = [
        pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not TRACKING.fullmatch(pair[0])
    ]
    query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in parameters)
    return f"{scheme}://{host}{port}{path}?{query}" if query else f"{scheme}://{host}{port}{path}"


def _ascii(host: str) -> str:
    """Return a host name in IDNA's ASCII form; a name without one is returned in lower case."""
    try:
        return host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return host.lower()
