import re
from pathlib import Path

import pytest

from maniple.store import open_store
from tests.cli.processes import environment, maniple

pytestmark = pytest.mark.anyio


async def test_a_key_is_made_listed_and_revoked_while_a_server_has_the_file_open(tmp_path: Path) -> None:
    env = environment(tmp_path, "")
    async with open_store(tmp_path / "data/maniple.db", tmp_path / "artifacts", server=True) as store:
        arguments = ("--max-runs", "2", "--daily-tokens", "1000000")
        status, output, notes = await maniple("keys", "add", "alice", *arguments, folder=tmp_path, env=env)
        key = await store.keys.find(output.strip())
        assert status == 0
        assert re.fullmatch(r"mk_[\w-]{43}\n", output), "nothing but the secret"
        assert key is not None
        assert (key.limits.max_runs, key.limits.daily_tokens, key.limits.daily_cost) == (2, 1_000_000, None)
        assert output.strip() not in notes

        status, listed, _ = await maniple("keys", "list", folder=tmp_path, env=env)
        words = "valid, made just now; max runs 2, daily tokens 1,000,000"
        assert (status, listed) == (0, f"{key.key_id[:8]}  alice  {words}\n")

        status, _, notes = await maniple("keys", "revoke", key.key_id[:8], folder=tmp_path, env=env)
        assert (status, notes) == (0, f"Key {key.key_id[:8]} of alice is revoked.\n")
        assert await store.keys.find(output.strip()) is None
        assert "revoked just now" in (await maniple("keys", "list", folder=tmp_path, env=env))[1]


async def test_a_key_that_is_not_there_is_not_revoked(tmp_path: Path) -> None:
    status, _, notes = await maniple("keys", "revoke", "x", folder=tmp_path, env=environment(tmp_path, ""))
    assert (status, notes) == (2, "There is no key 'x'. maniple keys list shows them.\n")


async def test_without_a_file_there_is_no_place_for_keys(tmp_path: Path) -> None:
    env = environment(tmp_path, "", MANIPLE_STORE__BACKEND="memory")
    status, _, notes = await maniple("keys", "add", "alice", folder=tmp_path, env=env)
    assert (status, notes) == (2, "Nothing is kept: store.backend is memory. Set it to sqlite.\n")
