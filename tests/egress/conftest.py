import pytest

from maniple.config.settings import FetchSettings
from maniple.egress import AddressGuard
from tests.crawler.allowed import ALLOWED, canary, site

__all__ = ["ALLOWED", "canary", "site"]


@pytest.fixture
def guard() -> AddressGuard:
    return AddressGuard(FetchSettings(allow_private=(f"{ALLOWED}/32",)))
