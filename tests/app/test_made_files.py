"""The files that an embedded team made, by thread."""

import io
import json
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage

from maniple import ConfigError, open_team, stream_run
from maniple.capabilities.workspace import workspaces_of
from maniple.errors import FileError
from tests.api.in_process import settings_of
from tests.openai_server import SIMPLE, call, reply, serving
from tests.team import plan, scripted_team, step

pytestmark = pytest.mark.anyio
SECRET = "sk-the-secret-of-this-test-0123456789"


def filing(content: str) -> dict:
    planned = reply(json.dumps(plan(step("file_manager"), step("reporter"))))
    return {
        **SIMPLE,
        "planner": [planned],
        "file_manager": [call("write_file", path="out/sums.csv", content=content), reply("Written.")],
    }


async def test_what_the_team_wrote_in_a_thread_is_listed_and_read(tmp_path: Path):
    with serving(filing("a,b\n1,3\n")) as server:
        async with open_team(settings_of(server.base_url, tmp_path)) as team:
            async for _ in stream_run(team, [HumanMessage("File it")], thread_id="t"):
                pass
            [file] = await team.files_of("t")
            assert (file.name, file.media_type, file.size) == ("out/sums.csv", "text/csv", 8)
            assert await file.read() == b"a,b\n1,3\n"
            assert await team.files_of("another") == []


async def test_only_the_teams_own_work_is_listed_and_links_are_not_followed(tmp_path: Path):
    settings = settings_of("http://127.0.0.1:9", tmp_path)
    workspaces = workspaces_of(settings)
    workspace = workspaces.open("t")
    workspaces.uploads("t").add([("same.csv", io.BytesIO(b"1")), ("changed.csv", io.BytesIO(b"1"))])
    for path in ("changed.csv", "made.txt", "__pycache__/x.pyc"):
        workspace.write(path, b"2")
    (tmp_path / "outside").write_bytes(b"outside")
    (workspace.path / "link").symlink_to(tmp_path / "outside")
    async with open_team(settings) as team:
        files = await team.files_of("t")
        assert [one.name for one in files] == ["changed.csv", "made.txt"]
        (workspace.path / "made.txt").unlink()
        (workspace.path / "made.txt").symlink_to(tmp_path / "outside")
        with pytest.raises(FileError):
            await files[1].read()


async def test_secrets_of_the_settings_are_masked(tmp_path: Path):
    model = {"model": "scripted", "base_url": "http://127.0.0.1:9", "api_key": SECRET}
    settings = settings_of("", tmp_path, models={"basic": model})
    workspaces_of(settings).open("t").write("a.txt", f"key={SECRET}".encode())
    async with open_team(settings) as team:
        [file] = await team.files_of("t")
        assert await file.read() == b"key=" + b"*" * len(SECRET)


async def test_a_team_without_workspaces_says_so():
    async with scripted_team(SIMPLE) as it:
        with pytest.raises(ConfigError):
            await it.team.files_of("t")
