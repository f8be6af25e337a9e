import pytest

from maniple.store import open_store


@pytest.fixture
async def store(tmp_path):
    """A store in a file."""
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as opened:
        yield opened
