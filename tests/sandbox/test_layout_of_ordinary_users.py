"""Packages and network of a sandbox whose server is not root."""

import asyncio
from pathlib import Path

import pytest

from maniple.config.settings import FetchSettings, SandboxSettings
from maniple.egress import AddressGuard, EgressRoute
from maniple.sandbox import open_sandbox
from maniple.sandbox.package_environment import find_environment, install_packages
from maniple.workspace import Workspaces
from tests.crawler.web import Reply, open_site
from tests.sandbox.nobody import as_nobody, home_of_nobody, needs_root
from tests.sandbox.wheels import offline_index, write_wheel

pytestmark = needs_root
ALLOWED = "127.0.0.2"
SETTINGS = SandboxSettings(packages=("tiny",), network="allowlist", allow_hosts=("127.0.0.2:1",))


async def use_both(home: Path) -> str:
    """What code prints that imports a package and reads a page."""
    guard = AddressGuard(FetchSettings(allow_private=(f"{ALLOWED}/32",)))
    async with open_site({"/": Reply("through")}, ALLOWED) as site:
        place = f"{ALLOWED}:{site.port}"
        settings = SETTINGS.model_copy(update={"allow_hosts": (place,)})
        leads = EgressRoute(guard.resolve, asyncio.open_connection)
        async with open_sandbox(settings, cache_dir=home / "cache", egress=leads) as sandbox:
            workspace = Workspaces(home / "workspaces").open("t")
            code = f"import tiny, urllib.request as r; tiny.VERSION, r.urlopen('http://{place}/').read()"
            completed = await sandbox.run_python(code, key="t", workspace=workspace)
            return completed.text()


@pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2"])
def test_an_ordinary_users_code_has_packages_and_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_wheel(offline_index(tmp_path, monkeypatch), "tiny")
    monkeypatch.setattr("maniple.sandbox.package_environment._lines", lambda name: ())
    with home_of_nobody() as home:
        made = find_environment(SETTINGS, home / "cache")
        assert made is not None
        asyncio.run(install_packages(made, lambda words: None))
        assert as_nobody(lambda: asyncio.run(use_both(home))) == "('1.0', b'through')"
