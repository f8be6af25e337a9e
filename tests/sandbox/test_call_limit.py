"""Who works at the same time, and whose background processes are frozen for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from maniple.config.sandbox_settings import SandboxSettings
from maniple.sandbox import sessions
from maniple.sandbox.backend import BackgroundProcesses
from maniple.sandbox.sessions import CallLimit, count_residents

pytestmark = pytest.mark.anyio

GIGABYTE = 1024**3


class _Sessions:
    """Sessions whose background processes run until they are frozen."""

    def __init__(self, limit: CallLimit) -> None:
        self.limit = limit
        self.frozen: list[str] = []
        self.thawed = asyncio.Event()

    def rest(self, key: str, *, is_busy: bool = True) -> None:
        self.limit.rest(
            key,
            BackgroundProcesses(lambda: self.frozen.append(key), lambda: self._thaw(key), lambda: is_busy),
        )

    def _thaw(self, key: str) -> None:
        self.frozen.remove(key)
        self.thawed.set()

    @asynccontextmanager
    async def call(self, *keys: str) -> AsyncIterator[None]:
        """Let each of these have a call under way."""
        calls = [self.limit.working(key) for key in keys]
        for call in calls:
            await call.__aenter__()
        try:
            yield
        finally:
            for call in calls:
                await call.__aexit__(None, None, None)


@pytest.fixture
async def four(anyio_backend: str) -> AsyncIterator[_Sessions]:
    limit = CallLimit(4)
    yield _Sessions(limit)
    limit.close()


async def test_calls_beyond_the_limit_wait_in_the_order_of_coming() -> None:
    limit, order = CallLimit(1), list[str]()

    async def call(key: str) -> None:
        async with limit.working(key):
            order.append(key)
            await asyncio.sleep(0)

    await asyncio.gather(*map(call, "abcd"))
    assert order == list("abcd")


async def test_nothing_is_frozen_while_there_are_no_more_sessions_than_places(four: _Sessions) -> None:
    for key in "abcd":
        four.rest(key)
    async with four.call("a", "b"):
        assert four.frozen == []


async def test_a_call_freezes_what_has_rested_for_longest_and_runs(four: _Sessions) -> None:
    for key in "abcd":
        four.rest(key)
    four.rest("a")
    async with four.call("e", "f"):
        assert four.frozen == ["b", "c"]


async def test_a_session_in_which_nothing_runs_is_not_frozen(four: _Sessions) -> None:
    four.rest("quiet", is_busy=False)
    for key in "abcd":
        four.rest(key)
    async with four.call("e"):
        assert four.frozen == ["a"]


async def test_a_frozen_session_continues_before_its_own_call(four: _Sessions) -> None:
    for key in "abcd":
        four.rest(key)
    async with four.call("e"):
        assert four.frozen == ["a"]
        async with four.call("a"):
            assert four.frozen == ["b"]


async def test_a_frozen_session_continues_when_there_are_places_again(
    four: _Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_THAW_SECONDS", 0.01)
    for key in "abcd":
        four.rest(key)
    async with four.call("e", "f"):
        assert four.frozen == ["a", "b"]
        four.limit.forget("c")
        async with asyncio.timeout(60):
            await four.thawed.wait()
        assert four.frozen == ["b"]


async def test_a_session_that_has_ended_is_neither_frozen_nor_thawed(four: _Sessions) -> None:
    for key in "abcde":
        four.rest(key)
    async with four.call("f"):
        assert four.frozen == ["a", "b"]
        four.limit.forget("a")
        four.limit.forget("c")
    async with four.call("a", "g"):
        assert four.frozen == ["a", "b"], "d and e are all that run besides"


async def test_a_cancelled_call_that_waited_takes_no_place() -> None:
    limit = CallLimit(1)

    async def call() -> None:
        async with limit.working("b"):
            raise AssertionError("the place is taken")

    async with limit.working("a"):
        task = asyncio.create_task(call())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
    async with asyncio.timeout(60), limit.working("c"):
        pass


@pytest.mark.parametrize(
    ("memory_gigabytes", "values", "expected"),
    [
        (24, {}, 96),
        (1, {}, 8),
        (1000, {}, 256),
        (4, {"concurrent": 32}, 32),
        (1, {"resident": 50}, 50),
        (24, {"backend": "docker"}, 8),
        (24, {"resident": 1_000}, 500),
    ],
)
def test_how_many_sessions_there_are_follows_from_the_memory(
    memory_gigabytes: int, values: dict[str, object], expected: int
) -> None:
    settings = SandboxSettings.model_validate(values)
    assert count_residents(settings, memory_gigabytes * GIGABYTE, 20_000) == expected


@pytest.mark.parametrize(
    ("descriptors", "values", "expected"),
    [(1_024, {}, 25), (1_024, {"resident": 96}, 25), (1_024, {"resident": 20}, 20), (64, {}, 8)],
)
def test_sessions_leave_descriptors_to_the_rest_of_the_process(
    descriptors: int, values: dict[str, object], expected: int, caplog: pytest.LogCaptureFixture
) -> None:
    settings = SandboxSettings.model_validate(values)
    assert count_residents(settings, 24 * GIGABYTE, descriptors) == expected
    assert ("sandbox.resident" in caplog.text) == (values.get("resident") == 96)
