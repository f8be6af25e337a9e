import pytest

from maniple.config.settings import FetchSettings
from maniple.egress import AddressGuard
from tests.crawler.allowed import ALLOWED, canary, site
from tests.egress.proxy_servers import authority, proxy_variables

__all__ = ["ALLOWED", "authority", "canary", "proxy_variables", "site"]


@pytest.fixture
def guard() -> AddressGuard:
    return AddressGuard(FetchSettings(allow_private=(f"{ALLOWED}/32",)))
