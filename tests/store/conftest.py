import pytest

from maniple.store import open_store


@pytest.fixture
async def store(tmp_path):
    """A store in a file."""
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "memory"])
async def any_store(request, tmp_path):
    """A store of each kind."""
    path = tmp_path / "maniple.db" if request.param == "sqlite" else None
    async with open_store(path, tmp_path / "artifacts", server=True) as opened:
        yield opened
