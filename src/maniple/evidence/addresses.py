"""When two spellings of a web address mean one page."""

import re
from functools import lru_cache
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urldefrag, urlsplit

TRACKING = re.compile(
    r"(?:utm_\w+|gclid|dclid|fbclid|ttclid|twclid|msclkid|yclid|igshid|mc_[ce]id|_ga|ref_src|spm)",
    re.IGNORECASE,
)
"""Query parameters that say where a reader came from, and nothing about the page."""


URL_CHARACTERS = 4_000
"""Longer ones are no page's address."""
_OWN_HOSTS = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})


def without_fragment(url: str) -> str:
    """Return an address without its `#part`."""
    return urldefrag(url.strip()).url if "#" in url else url.strip()


def own_port(url: str) -> int:
    """Return the port of an address on this machine; 0 for one elsewhere, and one that cannot be read."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return 0
    return port if (parts.hostname or "").casefold() in _OWN_HOSTS else 0


def names_no_page(url: str) -> bool:
    """Whether an address ends with its host and port."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.path in ("", "/") and not parts.query


def comparable_url(url: str) -> str:
    """Return the form of an address that is equal for every common spelling of one page.

    Left out: the scheme of the web (`http` or `https`) and its usual port, `www.`, the letter case of the
    host, the fragment, slashes at the end of the path, percent encoding, and parameters that only track. The
    path's letter case and every other parameter, in their order, count. An address that cannot be read, or is
    longer than `URL_CHARACTERS`, is its own form.
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
    # `quote` after `unquote` leaves one spelling of every character, and no raw one that ends a part early.
    path = quote(unquote(parts.path).rstrip("/"))
    kept = [
        pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not TRACKING.fullmatch(pair[0])
    ]
    query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in kept)
    return f"{scheme}://{host}{port}{path}?{query}" if query else f"{scheme}://{host}{port}{path}"


def _ascii(host: str) -> str:
    """Return a host name in its wire form; one that has none stays."""
    try:
        return host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return host.lower()
