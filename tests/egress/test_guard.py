import pytest

from maniple.config.web_settings import FetchSettings
from maniple.egress import AddressGuard
from maniple.egress.guard import PermanentFetchError

pytestmark = pytest.mark.anyio


async def test_a_port_that_is_not_allowed_is_named_and_no_other_address_is_suggested() -> None:
    guard = AddressGuard(FetchSettings(allow_private=("127.0.0.0/8",)))
    with pytest.raises(PermanentFetchError) as refused:
        await guard.resolve("127.0.0.1", 25)
    assert "127.0.0.1:25" in str(refused.value)
    assert "use " not in str(refused.value)


@pytest.mark.parametrize("port", [80, 443, 1024, 3000, 8080, 65_535])
async def test_ports_of_web_servers_are_allowed(port: int) -> None:
    guard = AddressGuard(FetchSettings(allow_private=("127.0.0.0/8",)))
    assert await guard.resolve("127.0.0.1", port) == "127.0.0.1"


@pytest.mark.parametrize("port", [-1, 0, 22, 81, 1023, 1719, 6000, 6667, 10_080, 65_536])
async def test_ports_that_browsers_refuse_are_not(port: int) -> None:
    guard = AddressGuard(FetchSettings(allow_private=("127.0.0.0/8",)))
    with pytest.raises(PermanentFetchError):
        await guard.resolve("127.0.0.1", port)
