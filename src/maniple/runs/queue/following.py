"""What is new of the runs that clients of this process follow: one query for all who ask meanwhile."""

import asyncio
from itertools import islice

from maniple.store.postgres.queue import FollowedPage, RunQueue
from maniple.store.waiting import StoreWait, WaitLimit, waiting

PAUSE_SECONDS = 0.01
"""The pause between two queries. It delays a token by as much, and bounds what many followers cost."""
MAX_TOGETHER = 100
"""How many runs one query reads."""

_Ask = tuple[str, int]
"""The id of a run, and the number of the event after which it is read."""


class RunFollower:
    """Reads the next events of runs; who asks for the same shares the answer."""

    def __init__(self, queue: RunQueue, limit: WaitLimit) -> None:
        self._queue = queue
        self._limit = limit
        self._asked: dict[_Ask, asyncio.Future[FollowedPage]] = {}
        self._reading: asyncio.Task[None] | None = None

    async def read(self, run_id: str, after: int) -> FollowedPage:
        """Return the events of a run after number `after`, as they are stored after this call.

        Raises the `StoreError` with which the query has failed, after it has waited as runs do.
        """
        ask = (run_id, after)
        if ask not in self._asked:
            self._asked[ask] = asyncio.get_running_loop().create_future()
        answer = self._asked[ask]
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="follow runs")
        await asyncio.wait({answer})  # shared: a client that leaves must not cancel it
        return answer.result()

    async def _read(self) -> None:
        try:
            with waiting(StoreWait(self._limit)):
                while self._asked:
                    await self._read_some()
                    await asyncio.sleep(PAUSE_SECONDS)
        finally:
            self._reading = None

    async def _read_some(self) -> None:
        some = [*islice(self._asked, MAX_TOGETHER)]
        answers = [self._asked.pop(ask) for ask in some]
        try:
            pages = await self._queue.follow(some)
        except BaseException as error:
            for answer in answers:
                answer.set_exception(error)
                answer.exception()  # else asyncio logs that nobody has retrieved it
            if not isinstance(error, Exception):
                raise
        else:
            for answer, page in zip(answers, pages, strict=True):
                answer.set_result(page)
