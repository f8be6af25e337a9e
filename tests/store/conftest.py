from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest

from maniple.store import Store, open_store

OpenStore = Callable[..., AbstractAsyncContextManager[Store]]
"""Opens the same data each time; `server=False` opens it beside a server."""


@pytest.fixture(params=["sqlite"])
def reopen(tmp_path: Path) -> OpenStore:
    """Open one store of each kind, again after it was closed or beside it."""
    return partial(open_store, tmp_path / "maniple.db", tmp_path / "artifacts")


@pytest.fixture
async def store(reopen: OpenStore) -> AsyncIterator[Store]:
    """An open store of each kind."""
    async with reopen(server=True) as opened:
        yield opened


@pytest.fixture
async def sqlite_store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store in a file."""
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as opened:
        yield opened
