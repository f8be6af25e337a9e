"""The table of API keys."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from uuid import uuid4

from maniple.store.records import ApiKey, KeyLimits
from maniple.store.secrets import digest, new_secret, same
from maniple.store.sqlite.connection import Database
from maniple.store.sqlite.pages import first
from maniple.text import whole

_COLUMNS = "key_id, name, digest, created_at, revoked_at, limits"


class SqliteKeys:
    """See `protocols.Keys`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, name: str, limits: KeyLimits | None = None) -> tuple[ApiKey, str]:
        secret = new_secret()
        key = ApiKey(str(uuid4()), whole(name), digest(secret), time.time(), None, limits or KeyLimits())
        values = (key.key_id, key.name, key.digest, key.created_at, None, json.dumps(asdict(key.limits)))
        sql = f"INSERT INTO api_keys ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
        await self._database.execute(sql, values)
        return key, secret

    async def find(self, secret: str) -> ApiKey | None:
        wanted = digest(secret)
        sql = f"SELECT {_COLUMNS} FROM api_keys WHERE digest = ? AND revoked_at IS NULL"
        rows = await self._database.read(lambda c: c.execute(sql, (wanted,)).fetchall())
        key = first(_key, rows)
        return key if key is not None and same(key.digest, wanted) else None

    async def get(self, key_id: str) -> ApiKey | None:
        sql = f"SELECT {_COLUMNS} FROM api_keys WHERE key_id = ?"
        return first(_key, await self._database.read(lambda c: c.execute(sql, (key_id,)).fetchall()))

    async def list(self) -> Sequence[ApiKey]:
        sql = f"SELECT {_COLUMNS} FROM api_keys ORDER BY position"
        return [_key(*row) for row in await self._database.read(lambda c: c.execute(sql).fetchall())]

    async def revoke(self, key_id: str) -> bool:
        sql = "UPDATE api_keys SET revoked_at = ? WHERE key_id = ? AND revoked_at IS NULL RETURNING 1"
        return bool(await self._database.execute(sql, (time.time(), key_id)))

    async def forget(self) -> int:
        valid = "SELECT 1 FROM api_keys WHERE revoked_at IS NULL"
        return len(
            await self._database.execute(f"DELETE FROM api_keys WHERE NOT EXISTS ({valid}) RETURNING 1")
        )


def _key(key_id: str, name: str, kept: str, *rest: object) -> ApiKey:
    created_at, revoked_at, limits = rest
    return ApiKey(key_id, name, kept, created_at, revoked_at, KeyLimits(**json.loads(limits)))  # type: ignore[arg-type]
