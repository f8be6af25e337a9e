"""Fixtures for what may reach one address of loopback and no other."""

from collections.abc import AsyncIterator

import pytest

from tests.crawler.web import Canary, Site, open_canary, open_site

# What listens at this address may be reached; the canary, on 127.0.0.1 and ::1, may not.
ALLOWED = "127.0.0.2"


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({}, ALLOWED) as site:
        yield site


@pytest.fixture
async def canary(anyio_backend: str) -> AsyncIterator[Canary]:
    async with open_canary() as canary:
        yield canary
