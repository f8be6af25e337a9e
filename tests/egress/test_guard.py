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
