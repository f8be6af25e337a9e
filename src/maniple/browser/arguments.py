"""Arguments of actions and settings: web addresses and keys."""

import ipaddress
import re
from urllib.parse import urlsplit

from maniple.egress import EgressResolver
from maniple.errors import ConfigError, FetchError

# A name with a dot, localhost or an IP address, with an optional port; no scheme such as `javascript:1`.
_HOST = re.compile(r"(localhost|\[[0-9a-f:.]+\]|[\w-]+(?:\.[\w-]+)+\.?)(?::(\d+))?(?=[/?#]|$)", re.IGNORECASE)

_MAX_PRESSES = 100
_MODIFIERS = {
    "control": "Control",
    "ctrl": "Control",
    "shift": "Shift",
    "alt": "Alt",
    "option": "Alt",
    "meta": "Meta",
    "cmd": "Meta",
    "command": "Meta",
    "controlormeta": "ControlOrMeta",
}
_KEY_NAMES = (
    *(
        "Enter",
        "Escape",
        "Tab",
        "Backspace",
        "Delete",
        "Insert",
        "Home",
        "End",
        "PageUp",
        "PageDown",
        "Space",
    ),
    *("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "CapsLock", "ContextMenu"),
    *(f"F{number}" for number in range(1, 13)),
)
_KEYS = {name.lower(): name for name in _KEY_NAMES}
# Names in other tools; in lower case they are ordinary words.
_ALIASES = {
    "Return": "Enter",
    "Esc": "Escape",
    "Del": "Delete",
    "Up": "ArrowUp",
    "Down": "ArrowDown",
    "Left": "ArrowLeft",
    "Right": "ArrowRight",
}


def complete_url(url: str) -> str:
    """Return the address with the scheme that is most likely meant if it has none.

    That is http for localhost, IP addresses and ports other than 443, and https for all others.
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
    """Check whether the page at `url` may be opened; the browser itself could not report the reason.

    Raises:
        FetchError: `url` is no http or https address, or `resolve` refuses its host.
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


def require_endpoint(setting: str, url: str, schemes: tuple[str, ...]) -> str:
    """Return `url`, the value of `setting`, if it is a valid address of a server.

    Raises:
        ConfigError: its scheme is none of `schemes`, or its host or port is missing or invalid.
    """
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        wanted = " or ".join(f"{scheme}://" for scheme in schemes)
        raise ConfigError(
            f"{setting} is {url!r}, which is no address of a server; it must begin with {wanted}."
        )
    return url


def parse_keys(keys: str) -> list[str] | None:
    """Return the keys and chords to press in turn, by Playwright's names; None for a text to type."""
    tokens = keys.split()
    if not tokens or len(tokens) > _MAX_PRESSES or keys != keys.strip():
        return None
    # Each of several words must look like a key: "home delivery" is a text, "Tab Tab Enter" is not.
    if len(tokens) > 1 and not all(token[0].isupper() for token in tokens):
        return None
    chords = [_chord(token) for token in tokens]
    return None if None in chords else [chord for chord in chords if chord]


def _chord(token: str) -> str | None:
    """Return a key or a chord such as `ctrl+shift+K` by Playwright's names; None for a text."""
    *held, last = re.split(r"\+(?=.)", token)
    modifiers = [_MODIFIERS.get(part.lower()) for part in held]
    key = _ALIASES.get(last) or _KEYS.get(last.lower()) or (last if held and len(last) == 1 else None)
    if key is None or None in modifiers:
        return None
    return "+".join([*filter(None, modifiers), key])
