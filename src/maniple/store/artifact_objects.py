"""The contents of artifacts in a bucket of S3, or of a service with its protocol, as objects named by id."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from maniple.config.service_settings import ArtifactSettings
from maniple.errors import StoreError, StoreUnreachable
from maniple.store.artifact_contents import (
    CHUNK_BYTES,
    ORPHAN_SECONDS,
    ContentDigest,
    WrittenFile,
    missing_content,
)
from maniple.store.artifact_files import open_source
from maniple.store.executors import run_in_thread

WHOLE_BYTES = 8 * CHUNK_BYTES
"""A larger content is sent in parts, as it is read."""
PATIENCE_SECONDS = 20.0
"""How long a request is repeated while the service does not answer."""
_READ_SECONDS = 30.0
_CONNECT_SECONDS = 5.0
_REFUSED = (PermissionDeniedError, UnauthenticatedError)


class ArtifactObjects:
    """See `ArtifactContents`. A prefix belongs to one database: `sweep` deletes what that does not know."""

    def __init__(self, settings: ArtifactSettings, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._bucket, self._prefix = settings.bucket
        at = f" at {settings.endpoint}" if settings.endpoint else ""
        self.address = f"{settings.url}{at}"
        self._objects = S3Store(
            self._bucket,
            prefix=self._prefix or None,
            client_options={
                "allow_http": (settings.endpoint or "").startswith("http:"),
                "connect_timeout": timedelta(seconds=_CONNECT_SECONDS),
                "read_timeout": timedelta(seconds=_READ_SECONDS),
            },
            retry_config={"max_retries": 100, "retry_timeout": timedelta(seconds=patience_seconds)},
            **_given(settings),
        )

    async def write(self, artifact_id: str, data: bytes | Path | BinaryIO) -> WrittenFile:
        digest = ContentDigest()
        with ExitStack() as stack:
            source = await run_in_thread(lambda: stack.enter_context(open_source(data)))
            head = await run_in_thread(lambda: source.read(WHOLE_BYTES))
            digest.add(head)
            with self._translate_errors():
                if len(head) < WHOLE_BYTES:
                    await obstore.put_async(self._objects, artifact_id, head, use_multipart=False)
                else:
                    await obstore.put_async(self._objects, artifact_id, _pieces(head, source, digest))
        return digest.result()

    async def require(self, artifact_id: str, size: int) -> None:
        try:
            with self._translate_errors():
                found = await obstore.head_async(self._objects, artifact_id)
        except FileNotFoundError:
            raise missing_content(artifact_id) from None
        if found["size"] != size:
            raise missing_content(artifact_id)

    async def stream(self, artifact_id: str, start: int, stop: int) -> AsyncGenerator[bytes]:
        if start >= stop:
            return  # a range of no bytes cannot be asked for
        try:
            with self._translate_errors():
                found = await obstore.get_async(self._objects, artifact_id, options={"range": (start, stop)})
                async for piece in found.stream(min_chunk_size=CHUNK_BYTES):
                    start += len(piece)
                    yield bytes(piece)
        except FileNotFoundError:
            raise missing_content(artifact_id) from None
        if start < stop:
            raise missing_content(artifact_id)

    async def missing(self, artifacts: Iterable[tuple[str, int]]) -> list[str]:
        sizes = {name: found["size"] async for name, found in self._list()}
        return [name for name, size in artifacts if sizes.get(name) != size]

    async def remove(self, artifact_ids: Iterable[str]) -> None:
        if names := list(artifact_ids):
            try:
                with self._translate_errors():
                    await obstore.delete_async(self._objects, names)
            except (StoreError, FileNotFoundError):
                return  # the sweep deletes them

    async def sweep(self, known: set[str]) -> None:
        oldest = time.time() - ORPHAN_SECONDS
        strays = [
            name
            async for name, found in self._list()
            if name not in known and found["last_modified"].timestamp() < oldest
        ]
        if strays:
            with self._translate_errors():
                await obstore.delete_async(self._objects, strays)

    async def _list(self) -> AsyncIterator[tuple[str, Any]]:
        """Yield each object directly below the prefix: its name and its metadata."""
        with self._translate_errors():
            async for page in self._objects.list():  # pyright: ignore[reportUnknownMemberType]
                for found in page:
                    if "/" not in found["path"]:
                        yield found["path"], found

    @contextmanager
    def _translate_errors(self) -> Generator[None]:
        """Raise errors of the service as a `StoreError`; `FileNotFoundError` passes but for a lost bucket."""
        try:
            yield
        except _REFUSED as error:
            raise StoreError(
                f"{self.address} refuses access ({_first_line(error)}). Set artifacts.access_key_id and "
                "artifacts.secret_access_key to a key that may read, write, list and delete there."
            ) from error
        except FileNotFoundError as error:
            if "NoSuchBucket" not in str(error):
                raise
            raise StoreError(
                f"{self.address}: there is no bucket {self._bucket}. Create it, or name another in "
                "artifacts.url."
            ) from error
        except BaseError as error:
            raise StoreUnreachable(
                f"{self.address} cannot be used ({_first_line(error)}). Check that the service runs, and "
                "artifacts.url, artifacts.endpoint and artifacts.region."
            ) from error


def _given(settings: ArtifactSettings) -> dict[str, Any]:
    """Return the options that are set; AWS's own variables apply for the others."""
    secret = settings.secret_access_key
    options = {
        "endpoint": settings.endpoint,
        "region": settings.region,
        "access_key_id": settings.access_key_id,
        "secret_access_key": secret.get_secret_value() if secret is not None else None,
    }
    return {name: value for name, value in options.items() if value}


async def _pieces(head: bytes, source: BinaryIO, digest: ContentDigest) -> AsyncGenerator[bytes]:
    yield head
    while chunk := await run_in_thread(lambda: source.read(CHUNK_BYTES)):
        digest.add(chunk)
        yield chunk


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(" :")
