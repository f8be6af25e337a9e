"""Which backend is opened for which setting, and the words where none is."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from maniple.config import SandboxSettings
from maniple.errors import Unavailable
from maniple.sandbox import factory, open_sandbox
from maniple.workspace import Workspaces
from tests.sandbox.backends.e2b_server import KEY, E2BServer, e2b_server

pytestmark = pytest.mark.anyio


@pytest.fixture
async def e2b(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[E2BServer]:
    async with e2b_server(tmp_path / "machines", monkeypatch) as server:
        yield server


async def refusal(**settings) -> str:
    with pytest.raises(Unavailable) as refused:
        await open_sandbox(SandboxSettings(**settings)).__aenter__()
    return str(refused.value)


@pytest.mark.parametrize(
    ("backend", "package"), [("docker", "aiodocker"), ("e2b", "e2b_code_interpreter"), ("daytona", "daytona")]
)
async def test_a_missing_sdk_is_reported_with_the_command_that_installs_it(monkeypatch, backend, package):
    monkeypatch.setattr(factory, "find_spec", lambda name: None)
    words = await refusal(backend=backend)
    assert f"package {package} is not installed" in words
    assert f"pip install -e '.[{backend}]'" in words


@pytest.mark.parametrize(("backend", "variable"), [("e2b", "E2B_API_KEY"), ("daytona", "DAYTONA_API_KEY")])
async def test_a_missing_key_is_reported_with_its_variable(backend, variable):
    assert f"set {variable} in .env" in await refusal(backend=backend)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"backend": "docker", "allow_hosts": ("pypi.org",)}, "docker cannot restrict code"),
        ({"backend": "unsafe-local", "allow_hosts": ("pypi.org",)}, "cannot restrict code"),
        (
            {"backend": "e2b", "e2b_api_key": SecretStr("k"), "allow_hosts": ("a.test", "b.test:99")},
            "port of a host (b.test:99)",
        ),
    ],
)
async def test_an_allowlist_that_a_backend_cannot_keep_is_refused(settings, words):
    assert words in await refusal(network="allowlist", **settings)


async def test_an_engine_that_is_not_there_is_reported():
    words = await refusal(backend="docker", docker_host="unix:///nowhere/docker.sock")
    assert "systemctl start docker" in words


async def test_a_service_that_refuses_the_key_is_reported(e2b):
    words = await refusal(backend="e2b", e2b_api_key=SecretStr("wrong"))
    assert "E2B refused the key" in words
    assert "docs/sandbox.md" in words


async def test_a_service_that_runs_a_line_is_taken_and_the_machine_for_that_line_is_gone(e2b):
    async with open_sandbox(SandboxSettings(backend="e2b", e2b_api_key=SecretStr(KEY))):
        assert [machine.gone for machine in e2b.machines.values()] == [True]


async def test_unsafe_local_runs_code_and_leaves_nothing_when_it_is_closed(tmp_path):
    workspace = Workspaces(tmp_path / "workspaces").open("thread")
    async with open_sandbox(SandboxSettings(backend="unsafe-local")) as sandbox:
        assert sandbox.name == "unsafe-local"
        told = await sandbox.run_python("import os; os.getpid()", key="thread", workspace=workspace)
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.value), 0)


async def test_a_local_python_that_does_not_run_is_reported():
    assert "sandbox.python" in await refusal(backend="unsafe-local", python=Path("/bin/false"))
