"""Artifacts and API keys."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from maniple.errors import StoreError
from maniple.store.files import safe_name
from maniple.store.memory.content import Content
from maniple.store.records import ApiKey, Artifact, KeyLimits, RunRecord
from maniple.store.secrets import digest, new_secret, same
from maniple.store.waiting import to_the_end
from maniple.text import whole


class MemoryArtifacts:
    """See `protocols.Artifacts`."""

    def __init__(self, content: Content) -> None:
        self._content = content

    async def add(
        self, run: RunRecord, name: str, media_type: str, data: bytes | Path | BinaryIO
    ) -> Artifact:
        return await to_the_end(self._add(run, name, media_type, data))

    async def get(self, artifact_id: str, owner: str | None) -> Artifact | None:
        artifact = self._content.artifacts.get(artifact_id)
        return artifact if artifact is not None and owner in (None, artifact.owner) else None

    async def open(self, artifact: Artifact) -> Path:
        return await self._content.files.path(artifact.artifact_id, artifact.size)

    async def of_run(self, run_id: str) -> list[Artifact]:
        return [one for one in self._content.artifacts.values() if one.run_id == run_id]

    async def of_thread(self, thread_id: str) -> list[Artifact]:
        return [one for one in self._content.artifacts.values() if one.thread_id == thread_id]

    async def _add(
        self, run: RunRecord, name: str, media_type: str, data: bytes | Path | BinaryIO
    ) -> Artifact:
        artifact_id = str(uuid4())
        written = await self._content.files.write(artifact_id, data)
        if run.run_id not in self._content.runs:
            await self._content.files.remove([artifact_id])
            raise StoreError(f"Run {run.run_id} was deleted.")
        values = (artifact_id, run.run_id, run.thread_id, run.owner, safe_name(name), whole(media_type))
        artifact = Artifact(*values, written.size, written.sha256, time.time())
        self._content.artifacts[artifact_id] = artifact
        return artifact


class MemoryKeys:
    """See `protocols.Keys`."""

    def __init__(self, content: Content) -> None:
        self._content = content

    async def add(self, name: str, limits: KeyLimits | None = None) -> tuple[ApiKey, str]:
        secret = new_secret()
        key = ApiKey(str(uuid4()), whole(name), digest(secret), time.time(), None, limits or KeyLimits())
        self._content.keys[key.key_id] = key
        return key, secret

    async def find(self, secret: str) -> ApiKey | None:
        wanted = digest(secret)
        usable = (key for key in self._content.keys.values() if key.revoked_at is None)
        return next((key for key in usable if same(key.digest, wanted)), None)

    async def get(self, key_id: str) -> ApiKey | None:
        return self._content.keys.get(key_id)

    async def list(self) -> Sequence[ApiKey]:
        return [*self._content.keys.values()]

    async def revoke(self, key_id: str) -> bool:
        key = self._content.keys.get(key_id)
        if key is None or key.revoked_at is not None:
            return False
        self._content.keys[key_id] = replace(key, revoked_at=time.time())
        return True

    async def forget(self) -> int:
        if any(key.revoked_at is None for key in self._content.keys.values()):
            return 0
        forgotten = len(self._content.keys)
        self._content.keys.clear()
        return forgotten
