"""What `maniple doctor` reports about each sandbox backend."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from maniple.cli.doctor import checks
from maniple.cli.doctor.checks import CheckResult
from maniple.config import SandboxSettings, Settings
from maniple.sandbox.backends.local import WARNING
from tests.sandbox.backends.e2b_server import KEY, e2b_server

pytestmark = pytest.mark.anyio


async def check(tmp_path: Path, **sandbox) -> CheckResult:
    settings = Settings(
        sandbox=SandboxSettings(**sandbox), data_dir=tmp_path / "data", cache_dir=tmp_path / "cache"
    )
    return await checks.check_sandbox(settings)


@pytest.mark.parametrize(
    ("sandbox", "reason", "remedy"),
    [
        (
            {"backend": "docker", "docker_host": "unix:///nowhere/d.sock"},
            "cannot be reached",
            "docs/sandbox.md",
        ),
        ({"backend": "e2b"}, "its key is missing", "E2B_API_KEY"),
        ({"backend": "daytona"}, "its key is missing", "DAYTONA_API_KEY"),
    ],
)
async def test_a_backend_that_cannot_run_code_is_a_warning_with_its_remedy(tmp_path, sandbox, reason, remedy):
    finding = await check(tmp_path, **sandbox)
    assert finding.status == "warning"
    assert reason in finding.detail
    assert "No code is run." in finding.detail
    assert remedy in finding.remedy


async def test_unsafe_local_is_a_warning_although_it_runs_code(tmp_path):
    finding = await check(tmp_path, backend="unsafe-local")
    assert (finding.status, finding.detail) == ("warning", WARNING)
    assert "sandbox.backend: bubblewrap" in finding.remedy


async def test_the_network_is_named(tmp_path):
    assert (await check(tmp_path)).detail == "bubblewrap passed its escape tests; network: none"


async def test_a_service_reports_that_code_ran_and_which_hosts_it_reaches(tmp_path, monkeypatch):
    async with e2b_server(tmp_path / "machines", monkeypatch):
        own = {"backend": "e2b", "e2b_api_key": SecretStr(KEY)}
        plain = await check(tmp_path, **own, network="allowlist", allow_hosts=("pypi.org", "a.test"))
        assert plain == CheckResult("sandbox", "ok", "e2b ran Python; network: only pypi.org, a.test")
        wanting = await check(tmp_path, **own, packages=("openpyxl",))
        assert wanting.status == "warning"
        assert "sandbox.packages has no effect" in wanting.detail
