"""The address of a browser that is elsewhere."""

from urllib.parse import urlsplit

from maniple.errors import ConfigError


def require_endpoint(setting: str, url: str, schemes: tuple[str, ...]) -> str:
    """Return `url`, the value of `setting`, if it can be the address of a server.

    Raises:
        ConfigError: it has none of the schemes, no host, or no port that there is.
    """
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        wanted = " or ".join(f"{scheme}://" for scheme in schemes)
        raise ConfigError(f"{setting} is {url!r}, and no address of a server; it must begin with {wanted}.")
    return url
