"""The reference servers as they are on the registries, each a program of its own, in the sandbox."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_server_time
import pytest

from maniple.capabilities.mcp import open_one_by_one
from maniple.config import Settings
from tests.mcp.open_servers import Opened

pytestmark = pytest.mark.anyio

PACKAGES = str(Path(mcp_server_time.__file__).parents[1])
PYTHON = "/usr/bin/python3"
EVERYTHING = Path(
    sys.prefix, "mcp-servers/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
)


def python_server(module: str, *args: str, **more: Any) -> dict[str, Any]:
    """Return the settings of a server that is installed beside these tests; PACKAGES are what it is shown."""
    env = {"PYTHONPATH": PACKAGES, **more.pop("env", {})}
    reads = [PACKAGES, *more.pop("reads", [])]
    return {"command": PYTHON, "args": ["-m", module, *args], "env": env, "reads": reads, **more}


@asynccontextmanager
async def sandboxed(folder: Path, name: str, server: dict[str, Any]) -> AsyncIterator[Opened]:
    settings = Settings.model_validate({"data_dir": folder / "data", "mcpServers": {name: server}})
    async with open_one_by_one(settings, [name]) as servers:
        yield Opened(servers, [name])


async def tried(found: Opened, name: str, **arguments: Any) -> Any:
    return await found.servers.try_out(found.tool(name), arguments)


def _repository(folder: Path) -> Path:
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.test"]
    for command in (["init", "-q"], ["add", "a.txt"], [*who, "commit", "-qm", "First"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def matches_this_python() -> bool:
    command = [PYTHON, "-c", "import sys; print(sys.version_info[:2])"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    return said.stdout.strip() == str(sys.version_info[:2])


needs_system_python = pytest.mark.skipif(
    not matches_this_python(), reason="the system's Python cannot import what this one has"
)


@needs_system_python
async def test_the_time_server_returns_the_time(tmp_path: Path):
    async with sandboxed(tmp_path, "time", python_server("mcp_server_time")) as found:
        assert found.obstacle("time") == ""
        zones = {"source_timezone": "UTC", "target_timezone": "UTC"}
        answer = await tried(found, "time__convert_time", time="12:00", **zones)
        assert '"time_difference": "+0.0h"' in answer.text
        answer = await tried(found, "time__get_current_time", timezone="Nowhere")
        assert answer.is_error
        assert "Nowhere" in answer.text


@needs_system_python
async def test_the_git_server_reads_the_repository_that_it_is_shown_and_changes_nothing(tmp_path: Path):
    repository = _repository(tmp_path / "repository")
    safe = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    reads = [str(repository)]
    server = python_server("mcp_server_git", "--repository", str(repository), env=safe, reads=reads)
    async with sandboxed(tmp_path, "git", server) as found:
        assert found.obstacle("git") == ""
        log = await tried(found, "git__git_log", repo_path=str(repository))
        assert "First" in log.text
        (repository / "b.txt").write_text("two")
        added = await tried(found, "git__git_add", repo_path=str(repository), files=["b.txt"])
        assert added.is_error


@pytest.mark.skipif(not EVERYTHING.is_file(), reason="setup.sh dev could not install it: there is no npm")
async def test_the_everything_server_gives_every_kind_of_result(tmp_path: Path):
    node = shutil.which("node") or ""
    root = str(EVERYTHING.parents[3])
    server = {"command": node, "args": [str(EVERYTHING)], "reads": [root]}
    async with sandboxed(tmp_path, "every thing", server) as found:
        assert found.obstacle("every thing") == ""
        calls = (tried(found, "every_thing__echo", message=str(n)) for n in range(100))
        echoes = await asyncio.gather(*calls)
        assert [one.text for one in echoes] == [f"Echo: {n}" for n in range(100)]
        image = await tried(found, "every_thing__get-tiny-image")
        assert [one.media_type for one in image.pictures] == ["image/png"]
        weather = await tried(found, "every_thing__get-structured-content", location="Chicago")
        assert weather.text.count("temperature") == 1
        links = await tried(found, "every_thing__get-resource-links")
        assert "<demo://resource/" in links.text
        resource = await tried(found, "every_thing__get-resource-reference")
        assert "Resource <demo://resource/dynamic/text/1>:" in resource.text
        environment = await tried(found, "every_thing__get-env")
        assert '"HOME": "/workspace"' in environment.text
        assert str(Path.home()) not in environment.text


async def test_a_server_runs_without_a_sandbox_only_where_that_is_spelled_out(tmp_path: Path):
    server = {"command": PYTHON, "args": ["-c", "input()"]}
    values = {"data_dir": tmp_path, "sandbox": {"backend": "off"}, "mcpServers": {"a": server}}
    async with open_one_by_one(Settings.model_validate(values), ["a"]) as servers:
        obstacle = servers.states()[0].unavailable_reason
        assert "The sandbox is turned off" in obstacle
