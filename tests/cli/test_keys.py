import re
from pathlib import Path

import pytest

from maniple.store import Thread, open_store
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
        words = "valid, created just now; max runs 2, daily tokens 1,000,000"
        assert (status, listed) == (0, f"{key.key_id[:8]}  alice  {words}\n")

        status, _, notes = await maniple("keys", "revoke", key.key_id[:8], folder=tmp_path, env=env)
        assert (status, notes.splitlines()[0]) == (0, f"Key {key.key_id[:8]} of alice is revoked.")
        assert await store.keys.find(output.strip()) is None
        assert "revoked just now" in (await maniple("keys", "list", folder=tmp_path, env=env))[1]


async def test_the_last_key_revoked_is_reported_with_the_ways_on(tmp_path: Path) -> None:
    env = environment(tmp_path, "")

    async def keys(*arguments: str) -> tuple[int | None, str]:
        status, _, notes = await maniple("keys", *arguments, folder=tmp_path, env=env)
        return status, notes

    ids = [(await keys("add", name))[1].split()[2] for name in ("ann", "bob")]
    assert "Every API key" not in (await keys("revoke", ids[0]))[1]
    status, told = await keys("forget")
    assert status == 2 and told.startswith("1 key ") and "keys revoke" in told
    told = (await keys("revoke", ids[1]))[1]
    assert "maniple keys add NAME" in told and "maniple keys forget" in told
    words = "Deleted 2 revoked keys. Clients on this machine need no key.\n"
    assert await keys("forget") == (0, words)
    assert (await keys("list"))[1] == "There are no API keys. Create one with maniple keys add NAME.\n"


async def test_the_first_key_says_what_becomes_of_conversations_without_one(tmp_path: Path) -> None:
    env = environment(tmp_path, "")
    async with open_store(tmp_path / "data/maniple.db", tmp_path / "artifacts", server=True) as store:
        told = [(await maniple("keys", "add", "ann", folder=tmp_path, env=env))[2]]
        await maniple("keys", "revoke", told[0].split()[2], folder=tmp_path, env=env)
        await store.threads.create(Thread("t", "", "Sums", 1.0, 1.0))
        told += [(await maniple("keys", "add", name, folder=tmp_path, env=env))[2] for name in ("bob", "eve")]
    assert ["keys forget" in notes for notes in told] == [False, True, False]


async def test_a_daily_cost_that_nothing_could_reach_is_reported(tmp_path: Path) -> None:
    arguments = ("keys", "add", "alice", "--daily-cost", "1")
    for prices, is_told in (({}, True), ({"MANIPLE_MODELS__BASIC__PRICE_INPUT": "1"}, False)):
        env = environment(tmp_path, "http://127.0.0.1:1/v1", **prices)
        status, _, notes = await maniple(*arguments, folder=tmp_path, env=env)
        assert (status, "models.*.price_input" in notes) == (0, is_told)


async def test_a_key_that_is_not_there_is_not_revoked(tmp_path: Path) -> None:
    status, _, notes = await maniple("keys", "revoke", "x", folder=tmp_path, env=environment(tmp_path, ""))
    assert status == 2 and "no key 'x'" in notes


async def test_without_a_file_there_is_no_place_for_keys(tmp_path: Path) -> None:
    env = environment(tmp_path, "", MANIPLE_STORE__BACKEND="memory")
    status, _, notes = await maniple("keys", "add", "alice", folder=tmp_path, env=env)
    assert status == 2 and "store.backend is memory" in notes
