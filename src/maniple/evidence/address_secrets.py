"""Addresses as they are shown: without the passwords, tokens and other secrets in them."""

import re
from urllib.parse import quote, unquote, unquote_plus

HIDDEN = "REDACTED"
"""Stands for a secret. It is a word, so that it ends no link in Markdown."""
_ADDRESS = re.compile(
    r"(?:https?|ftp)://[^\s<>\"'`|\\^{}\[\]，。；！？、（）【】「」『』《》“”]+", re.IGNORECASE
)
_USER = re.compile(r"(?<=://)(?P<name>[^/?#@:]*)(?P<password>:[^/?#@]*)?@")
_PARAMETER = re.compile(r"(?P<before>[?&;#])(?P<name>[^=&;#?]{1,100})=(?P<value>[^&;#)]*)")
_END = re.compile(r"[.,:!?*_~]+\Z")
"""What ends an address in a text belongs to its sentence."""
_WORD = re.compile(r"[A-Z]?[a-zß-ÿ]+|[A-Z]+(?![a-z])|[^\W\d_a-zA-Zß-ÿ]+")
_SECRETS = frozenset(
    {"pass", "passcode", "passphrase", "password", "passwd", "pwd", "pw", "secret", "token", "jwt", "otp"}
    | {"apikey", "credential", "credentials", "passwort", "kennwort", "mdp", "contraseña", "contrasena"}
    | {"senha", "пароль", "密码", "パスワード"}
)
"""Words of a parameter's name by which its value is a secret."""
_SECRET_ENDS = tuple(one for one in _SECRETS if len(one) > 4)
_ALSO_OF_SECRETS = frozenset(
    {"key", "code", "auth", "authorization", "signature", "sig", "session", "sessionid", "sid", "phpsessid"}
    | {"jsessionid", "ticket", "nonce", "assertion", "hmac"}
)
"""Words of names whose values are secrets if they are opaque; others, such as `key=C`, select a page."""
_OPAQUE = re.compile(r"(?=\D*\d)(?=[^a-zA-Z]*[a-zA-Z])[\w.~+/=-]{16,}")
_SIGNED_DATA = re.compile(r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*")
"""A JSON Web Token."""


def hide_secrets(text: str) -> str:
    """Return an address, or a text with addresses, without the secrets in these."""
    return _ADDRESS.sub(lambda found: _hide(found[0]), text)


def _hide(url: str) -> str:
    if "@" in url:
        url = _USER.sub(_hide_user, url, count=1)
    return _PARAMETER.sub(_hide_value, url) if "=" in url else url


def _hide_user(found: re.Match[str]) -> str:
    name = HIDDEN if _OPAQUE.fullmatch(found["name"]) else found["name"]
    return f"{name}:{HIDDEN}@" if found["password"] else f"{name}@"


def _hide_value(found: re.Match[str]) -> str:
    before, name, value = found["before"], found["name"], found["value"]
    plain = unquote_plus(value)
    if "://" in plain:
        hidden = hide_secrets(plain)
        return found[0] if hidden == plain else f"{before}{name}={quote(hidden, safe='')}"
    end = _END.search(value)
    rest = end[0] if end else ""
    is_secret = plain and (_is_named_secret(unquote(name), plain) or _SIGNED_DATA.search(plain))
    return f"{before}{name}={HIDDEN}{rest}" if is_secret else found[0]


def _is_named_secret(name: str, value: str) -> bool:
    words = {one.casefold() for one in _WORD.findall(name)}
    whole = re.sub(r"[\W\d_]", "", name).casefold()
    if not words.isdisjoint(_SECRETS) or whole.endswith(_SECRET_ENDS):
        return True
    is_likely = not words.isdisjoint(_ALSO_OF_SECRETS) or whole in _ALSO_OF_SECRETS
    return is_likely and _OPAQUE.fullmatch(value) is not None
