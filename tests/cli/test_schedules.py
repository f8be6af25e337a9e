"""`maniple schedule`."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.processes import environment, maniple

pytestmark = pytest.mark.anyio


async def test_a_schedule_is_added_listed_paused_and_removed(tmp_path: Path) -> None:
    env = environment(tmp_path, "")

    async def schedule(*arguments: str) -> tuple[int | None, str, str]:
        return await maniple("schedule", *arguments, folder=tmp_path, env=env)

    rule = ("--cron", "0 8 * * 1", "--zone", "Europe/Berlin", "--overlap", "queue")
    status, added, notes = await schedule("add", *rule, "--effort", "low", "the", "news")
    assert status == 0 and "08:00" in notes
    name = added.strip()[:8]
    [listed] = json.loads((await schedule("list", "--json"))[1])
    assert (listed["name"], listed["cron"], listed["overlap"]) == ("the news", "0 8 * * 1", "queue")
    shown = (await schedule("show", name))[1]
    assert "the news" in shown and "effort low" in shown and shown.count("next ") >= 5
    data = json.loads((await schedule("show", name, "--json"))[1])
    assert (data["depth"], data["effort"]) == ("", "low")
    assert len((await schedule("next", name, "--count", "3"))[1].splitlines()) == 3
    assert (await schedule("pause", name))[0] == 0
    assert "paused" in (await schedule("list"))[1]
    assert (await schedule("resume", name))[0] == 0
    assert (await schedule("remove", name))[0] == 0
    assert json.loads((await schedule("list", "--json"))[1]) == []


async def test_a_schedule_in_a_zone_that_this_machine_does_not_know_is_listed(tmp_path: Path) -> None:
    env = environment(tmp_path, "")
    await maniple("schedule", "add", "--cron", "0 8 * * 1", "the news", folder=tmp_path, env=env)
    with closing(sqlite3.connect(tmp_path / "data" / "maniple.db")) as connection:
        connection.execute("UPDATE schedules SET zone = 'Europe/Nowhere'")
        connection.commit()
    status, output, notes = await maniple("schedule", "list", folder=tmp_path, env=env)
    assert (status, "UTC" in output, "the news" in output) == (0, True, True), notes


async def test_a_wrong_time_or_name_is_wrong_usage(tmp_path: Path) -> None:
    env = environment(tmp_path, "")
    for words in (
        ("add", "--cron", "0 25 * * *", "a"),
        ("add", "a"),
        ("add", "--cron", "0 8 * * *", "--overlap", "all", "a"),
        ("add", "--cron", "0 8 * * *", "--budget", "water=3", "a"),
        ("pause", "1a2b"),
        ("next",),
        ("next", "--cron", "x"),
    ):
        status, output, notes = await maniple("schedule", *words, folder=tmp_path, env=env)
        assert (status, output) == (2, ""), words
        assert notes
