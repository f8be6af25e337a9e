"""`maniple webhook`."""

from pathlib import Path

import pytest

from tests.cli.processes import environment, maniple

pytestmark = pytest.mark.anyio


async def test_a_webhook_is_added_listed_and_removed(tmp_path: Path) -> None:
    env = environment(tmp_path, "", MANIPLE_FETCH__ALLOW_PRIVATE='["127.0.0.0/8"]')

    async def webhook(*arguments: str) -> tuple[int | None, str, str]:
        return await maniple("webhook", *arguments, folder=tmp_path, env=env)

    status, secret, notes = await webhook("add", "--on", "failed", "http://127.0.0.1:80/hook")
    assert status == 0 and secret.startswith("whsec_"), notes
    listed = (await webhook("list"))[1]
    assert "/hook" in listed and secret.strip() not in listed
    name = listed.split()[0]
    assert (await webhook("deliveries", name))[:2] == (0, "")
    assert (await webhook("redeliver", name, "msg_1"))[0] == 2
    assert (await webhook("remove", name))[0] == 0
    assert (await webhook("remove", name))[0] == 2
    assert (await webhook("add", "--on", "never", "http://127.0.0.1/"))[0] == 2
    assert (await webhook("add", "http://10.0.0.1/"))[0] == 2
