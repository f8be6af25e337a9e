"""Those who follow runs on one process share its queries."""

import asyncio
from dataclasses import dataclass, field
from importlib.util import find_spec

import pytest

from maniple.errors import StoreError
from maniple.store.waiting import WaitLimit
from tests.store.samples import some_events, stored_run

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(find_spec("procrastinate") is None, reason="needs maniple[postgres]"),
]
RUNS, GROUPS = 8, 5


@dataclass
class Counted:
    """A queue that counts what it is asked."""

    queue: object
    queries: list[int] = field(default_factory=list)

    async def follow(self, asked):
        self.queries.append(len(asked))
        return await self.queue.follow(asked)


async def test_many_followers_take_few_queries_and_miss_nothing(open_postgres_again):
    from maniple.runs.queue.following import RunFollower
    from maniple.store.postgres.queue import RunQueue

    async with open_postgres_again(server=False) as store:
        runs = [await stored_run(store) for _ in range(RUNS)]
        counted = Counted(RunQueue(store.database))
        follower = RunFollower(counted, WaitLimit(0))

        async def follow(run_id: str) -> list[int]:
            seen: list[int] = []
            async with asyncio.timeout(60):
                while len(seen) < GROUPS:
                    page = await follower.read(run_id, seen[-1] if seen else 0)
                    seen += [one.number for one in page.events]
            return seen

        twice = [run.run_id for run in runs for _ in range(2)]
        following = [asyncio.create_task(follow(run_id)) for run_id in twice]
        leaving = asyncio.create_task(follower.read(twice[0], 0))
        await asyncio.sleep(0)
        leaving.cancel()  # the others who asked for the same get their answer
        for number in range(1, GROUPS + 1):
            await store.events.append([(run.run_id, some_events(number, number)) for run in runs])
        seen = await asyncio.gather(*following)
    assert seen == [[*range(1, GROUPS + 1)]] * len(twice)
    assert counted.queries[0] == RUNS
    assert max(counted.queries) <= len(twice)


async def test_a_query_that_fails_fails_for_all_who_asked_and_the_next_one_works():
    from maniple.runs.queue.following import RunFollower
    from maniple.store.postgres.queue import FollowedPage

    class Failing:
        fails = True

        async def follow(self, asked):
            if self.fails:
                raise StoreError("away")
            return [FollowedPage([], has_more=False, is_unfinished=True) for _ in asked]

    queue = Failing()
    follower = RunFollower(queue, WaitLimit(0))
    found = await asyncio.gather(*(follower.read(one, 0) for one in "aab"), return_exceptions=True)
    assert [type(one) for one in found] == [StoreError] * 3
    queue.fails = False
    assert (await follower.read("a", 0)).is_unfinished
