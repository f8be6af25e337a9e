"""What the doctor reports about the hosts that sandboxed code may reach."""

import pytest

from maniple.cli.doctor.checks import check_network
from maniple.config import Settings
from maniple.config.settings import FetchSettings, SandboxSettings

pytestmark = pytest.mark.anyio


def allowing(*hosts: str, private: tuple[str, ...] = ()) -> Settings:
    sandbox = SandboxSettings(network="allowlist", allow_hosts=hosts)
    return Settings(sandbox=sandbox, fetch=FetchSettings(allow_private=private))


async def test_hosts_with_allowed_addresses_are_not_reported() -> None:
    settings = allowing("127.0.0.2:8080", "*.example.org", private=("127.0.0.0/8", "::1/128"))
    assert await check_network(settings) == []


async def test_one_that_leads_inside_is_a_warning_with_the_setting() -> None:
    (finding,) = await check_network(allowing("127.0.0.2", "*.example.org"))
    assert finding.status == "warning"
    assert finding.detail.count("127.0.0.2 has an address")
    assert "fetch.allow_private" in finding.remedy


async def test_a_port_that_is_never_connected_to_is_a_warning() -> None:
    (finding,) = await check_network(allowing("127.0.0.2:25", private=("127.0.0.0/8", "::1/128")))
    assert "names a port that" in finding.detail


async def test_without_an_allowlist_nothing_is_reported() -> None:
    assert await check_network(Settings()) == []
