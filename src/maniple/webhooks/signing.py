"""The secrets and the signatures of webhooks (https://www.standardwebhooks.com).

A secret is derived from a key in a file beside the database, and never stored: a copy of the database signs
nothing. Who deletes the file gives every webhook another secret.
"""

import base64
import hashlib
import hmac
import os
from pathlib import Path

from maniple.errors import StoreReadOnly
from maniple.store import Webhook

KEY_FILE = "webhooks.key"
SECRET_PREFIX = "whsec_"
_KEY_BYTES = 32


def load_webhook_key(folder: Path) -> bytes:
    """Return the key in `KEY_FILE` of a folder, which is made once. Blocks; raises `StoreReadOnly`."""
    path = folder / KEY_FILE
    try:
        if not path.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            made = path.with_name(f"{KEY_FILE}.{os.getpid()}")
            made.touch(0o600)
            made.write_bytes(os.urandom(_KEY_BYTES))
            try:
                os.link(made, path)  # complete, and the first of several processes wins
            except FileExistsError:
                pass
            finally:
                made.unlink()
        key = path.read_bytes()
    except OSError as error:
        raise StoreReadOnly(f"{path} cannot be read or written ({error.strerror}).") from error
    if len(key) < _KEY_BYTES:
        raise StoreReadOnly(f"{path} is damaged. Restore it, or delete it for new secrets of all webhooks.")
    return key


def derive_secret(key: bytes, webhook: Webhook) -> str:
    """Return the secret of a webhook: `whsec_` and 32 bytes in base64."""
    text = f"{webhook.webhook_id}:{webhook.salt}".encode()
    return SECRET_PREFIX + base64.b64encode(hmac.digest(key, text, hashlib.sha256)).decode()


def sign_message(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the `webhook-signature` of a message; `timestamp` is in Unix seconds."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(signed).decode()}"
