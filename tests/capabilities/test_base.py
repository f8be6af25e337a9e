"""Capabilities open in order; what is absent is handled in one place."""

from contextlib import AsyncExitStack, asynccontextmanager
from typing import ClassVar

import pytest
from langchain_core.tools import tool

from maniple.agents.offers import Offer, merge_offers
from maniple.capabilities.base import Capability, CapabilityContext, open_all
from maniple.config import Settings
from maniple.errors import Unavailable

pytestmark = pytest.mark.anyio


class Engine:
    """A service; it is falsy, as an empty collection is."""

    def __bool__(self) -> bool:
        return False


@tool
async def drive(where: str) -> str:
    """Drive."""
    return where


class EngineCapability(Capability):
    name: ClassVar = "engine"
    provides: ClassVar = (Engine,)
    closed: ClassVar[list[str]] = []

    def __init__(self, missing: Unavailable | None) -> None:
        self._missing = missing

    @asynccontextmanager
    async def _opening(self):
        if self._missing is not None:
            raise self._missing
        yield Engine()
        self.closed.append("engine")

    async def open(self, context: CapabilityContext) -> Offer:
        engine = await context.stack.enter_async_context(self._opening())
        return Offer(services={Engine: engine}, notices=("It is loud.",))


class CarCapability(Capability):
    name: ClassVar = "car"
    roles: ClassVar = ("driver",)

    async def open(self, context: CapabilityContext) -> Offer:
        context.require(Engine)
        return Offer({"driver": [drive]})


async def opened(missing: Unavailable | None = None) -> Offer:
    async with AsyncExitStack() as stack:
        context = CapabilityContext(Settings(), stack)
        return await open_all([EngineCapability(missing), CarCapability()], context)


async def test_a_capability_uses_the_services_of_earlier_ones() -> None:
    offer = await opened()
    assert [one.name for one in offer.tools_of("driver")] == ["drive"]
    assert (dict(offer.unavailable), offer.notices) == ({}, ("It is loud.",))


async def test_an_absent_service_is_one_notice_and_the_reason_of_each_worker_without_it() -> None:
    missing = Unavailable("There is no engine.", "build one in.")
    offer = await opened(missing)
    assert offer.tools_of("driver") == []
    assert (offer.unavailable["driver"], offer.notices) == (str(missing), (str(missing),))


async def test_what_was_opened_is_closed_with_the_team() -> None:
    EngineCapability.closed.clear()
    await opened()
    assert EngineCapability.closed == ["engine"]


async def test_a_service_that_nothing_provides_is_named() -> None:
    async with AsyncExitStack() as stack:
        with pytest.raises(Unavailable, match="Engine"):
            CapabilityContext(Settings(), stack).require(Engine)


def test_merged_offers_join_tools_and_keep_the_order_of_middleware() -> None:
    first = Offer({"driver": [drive]}, middleware=[lambda worker: []], notices=("a",))
    second = Offer({"driver": [drive]}, {"cook": "no stove"}, middleware=[lambda worker: []], notices=("b",))
    merged = merge_offers([first, second])
    assert len(merged.tools_of("driver")) == 2
    assert [*merged.middleware] == [*first.middleware, *second.middleware]
    assert (dict(merged.unavailable), merged.notices) == ({"cook": "no stove"}, ("a", "b"))
