"""Opening a store."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from maniple.store.protocols import Store


def open_store(
    path: Path | None, artifacts: Path, *, server: bool, earlier: Path | None = None
) -> AbstractAsyncContextManager[Store]:
    """Open the store in the SQLite file `path`; None keeps everything in memory until it is closed.

    `artifacts` is the directory of the artifacts' contents, this file's alone; `earlier` one that was shared,
    in which older ones may lie. Of servers only one may have a file open, any
    other process (`server=False`) beside it. Raises `StoreError` with what to do.
    """
    if path is None:
        from maniple.store.memory import open_memory

        return open_memory(artifacts)
    from maniple.store.files import ArtifactFiles
    from maniple.store.sqlite import open_sqlite

    return open_sqlite(path, ArtifactFiles(artifacts, earlier), server=server)
