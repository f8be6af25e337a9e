"""Secrets of API keys. They are 256 random bits, so a fast digest hides them as well as a slow one."""

import hashlib
import hmac
import secrets

from maniple.store.protocols import Keys

PREFIX = "mk_"


def new_secret() -> str:
    """Return `mk_` and 32 random bytes in URL-safe base64."""
    return PREFIX + secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """Return the SHA-256 (hex) by which a secret is known."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def same(left: str, right: str) -> bool:
    """Compare two digests in a time that tells nothing."""
    return hmac.compare_digest(left, right)


async def valid_keys(keys: Keys) -> int:
    """Return how many keys were not revoked."""
    return sum(key.revoked_at is None for key in await keys.list())
