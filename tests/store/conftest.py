from collections.abc import AsyncIterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from maniple.store import Store, open_store
from tests.postgres import OpenStore

# It imports what is not there; the other tests of PostgreSQL are skipped with the reason.
collect_ignore = [] if find_spec("psycopg") else ["test_postgres.py"]


@pytest.fixture(params=["sqlite", "postgres"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    """Open one store of each kind, again after it was closed or beside it."""
    if request.param == "postgres":
        return request.getfixturevalue("open_postgres_again")
    return partial(open_store, tmp_path / "maniple.db", tmp_path / "artifacts")


@pytest.fixture
async def store(reopen: OpenStore) -> AsyncIterator[Store]:
    """An open store of each kind."""
    async with reopen(server=True) as opened:
        yield opened


@pytest.fixture
async def postgres_store(open_postgres_again: OpenStore) -> AsyncIterator[Store]:
    """A store in PostgreSQL."""
    async with open_postgres_again(server=True) as opened:
        yield opened


@pytest.fixture
async def sqlite_store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store in a file."""
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as opened:
        yield opened
