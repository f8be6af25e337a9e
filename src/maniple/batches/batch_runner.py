"""Works on batches.

An item is stored as started, with the id that its run will have, before the run is. Whoever finds it so, this
process or the next one after a crash, requests the run of this id: one that exists is not started again.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from uuid import NAMESPACE_URL, uuid5

from langchain_core.messages import HumanMessage

from maniple.background import background_task
from maniple.batches.answer_rules import AnswerRule
from maniple.errors import ManipleError, StoreError
from maniple.report_files import read_answer
from maniple.runs import Engine, RunRequest
from maniple.scope.budget import Budget
from maniple.store import Batch, BatchDriver, BatchItem, BatchTotals, RunRecord, Store

BUSY_SECONDS = 0.1
"""How often the runs of a batch are looked at."""
IDLE_SECONDS = 1.0
"""How often new batches are looked for."""
REQUEST_SECONDS = 5.0
"""How often a run of another process is requested again, which takes it over if that process has died."""
FAULT_SECONDS = 60.0
"""When a batch is tried again that could not be worked on."""
_USED_UP = "The budget of the batch is used up."
_LOG = logging.getLogger(__name__)


class BatchRunner:
    """Starts the runs of the batches of one program, and judges their answers."""

    def __init__(self, store: Store, engine: Engine, driver: BatchDriver) -> None:
        self._store = store
        self._engine = engine
        self._driver: BatchDriver = driver
        self._batches = store.batches
        self._requested = dict[str, float]()
        """When this process has requested each run that has not ended (monotonic seconds)."""
        self._set_aside = dict[str, float]()
        """When each batch that could not be worked on is tried again (monotonic seconds)."""

    async def advance_all(self) -> bool:
        """Work on every open batch; return whether there is one. Raises `StoreError`."""
        found = await self._batches.list_open(self._driver)
        for batch in found:
            if self._set_aside.get(batch.batch_id, 0.0) <= time.monotonic():
                await self._advance_alone(batch)
        return bool(found)

    async def _advance_alone(self, batch: Batch) -> None:
        """Work on a batch whose faults do not stop the others. Raises `StoreError`, which does."""
        try:
            if not await self.advance(batch):
                self._set_aside.pop(batch.batch_id, None)
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - it is logged, and the others go on
            self._set_aside[batch.batch_id] = time.monotonic() + FAULT_SECONDS
            text = "Batch %s could not be worked on; it is tried again in %g s."
            _LOG.exception(text, batch.batch_id, FAULT_SECONDS)

    async def advance(self, batch: Batch) -> bool:
        """Judge what has ended and start what has room; return whether the batch is open still."""
        active = 0
        for item, status in await self._batches.list_started(batch.batch_id, batch.parallel):
            is_at_work = status in ("queued", "running") and self._was_requested(item.run_id)
            active += is_at_work or not await self._settle(batch, item)
        if active == batch.parallel:
            return True
        totals = await self._batches.total(batch.batch_id)
        left = _subtract(Budget(**json.loads(batch.budget)), totals)
        if left is None:
            await self._batches.change_all(batch.batch_id, "waiting", "left_out", _USED_UP)
        else:
            room = batch.parallel - active
            for item in await self._batches.list_items(batch.batch_id, "waiting", limit=room):
                if not await self._start(batch, item, left):
                    break
        counts = (await self._batches.total(batch.batch_id)).counts
        is_open = bool(counts.get("waiting") or counts.get("started"))
        if not is_open:
            await self._batches.set_open(batch.batch_id, is_open=False)
        return is_open

    async def _start(self, batch: Batch, item: BatchItem, left: Budget) -> bool:
        attempt = item.attempt + 1
        run_id = str(uuid5(NAMESPACE_URL, f"maniple:batch:{batch.batch_id}:{item.number}:{attempt}"))
        started = replace(item, state="started", attempt=attempt, run_id=run_id, reason="")
        if not await self._batches.change_item(batch.batch_id, started, "waiting"):
            return True
        return await self._request(batch, started, left)

    def _was_requested(self, run_id: str) -> bool:
        return time.monotonic() < self._requested.get(run_id, float("-inf")) + REQUEST_SECONDS

    async def _request(self, batch: Batch, item: BatchItem, left: Budget, *, is_known: bool = False) -> bool:
        """Request the run of an item; return False if there is no room for runs at present."""
        request = _read_request(batch)
        request = replace(
            request,
            messages=[HumanMessage(item.input)],
            options=replace(request.options, may_ask=False),  # nobody answers in a batch
            budget=request.budget.within(left),
            run_id=item.run_id,
        )
        try:
            await self._engine.submit(request)
        except ManipleError as error:
            if error.retryable:  # it is requested again with the next look
                if not item.reason and not is_known:
                    waiting = replace(item, reason=f"It waits: {error}")
                    await self._batches.change_item(batch.batch_id, waiting, "started")
                return False
            failed = replace(item, state="failed", reason=str(error))
            await self._batches.change_item(batch.batch_id, failed, "started")
            return True
        self._requested[item.run_id] = time.monotonic()
        return True

    async def _settle(self, batch: Batch, item: BatchItem) -> bool:
        """Judge the run of an item; return False if it has not ended."""
        run = await self._store.runs.get(item.run_id)
        if run is None:
            totals = await self._batches.total(batch.batch_id)
            left = _subtract(Budget(**json.loads(batch.budget)), totals)
            if left is None:
                left_out = replace(item, state="left_out", reason=_USED_UP)
                await self._batches.change_item(batch.batch_id, left_out, "started")
                return True
            await self._request(batch, item, left)
            return False
        if run.is_unfinished:
            if run.process == self._store.process:
                self._requested[item.run_id] = time.monotonic()
            elif not self._was_requested(item.run_id):
                # Its process may have died, or die later; a run that exists has its own budget.
                await self._request(batch, item, Budget(), is_known=True)
            return False
        reason = ""
        if run.status == "interrupted":
            reason = "The run waited for an answer, and nobody answers in a batch."
            run = await self._engine.cancel(run.run_id, batch.owner)
        judged = await self._judge(batch, item, run, reason)
        self._requested.pop(item.run_id, None)
        await self._batches.change_item(batch.batch_id, judged, "started")
        return True

    async def _judge(self, batch: Batch, item: BatchItem, run: RunRecord, reason: str) -> BatchItem:
        used = run.usage
        item = replace(
            item,
            reason="",
            tokens=item.tokens + used.input_tokens + used.output_tokens,
            model_calls=item.model_calls + used.model_calls,
            tool_calls=item.tool_calls + used.tool_calls,
            seconds=item.seconds + used.seconds,
            cost=item.cost + used.cost,
        )
        if run.status != "completed":
            return _again(
                batch,
                replace(item, state="failed", reason=reason or run.error or f"The run was {run.status}."),
            )
        answer = await read_answer(self._store, run) or ""
        rule = AnswerRule.model_validate_json(batch.rule)
        fault = await asyncio.to_thread(rule.find_fault, answer)
        if fault:
            return _again(batch, replace(item, state="rejected", reason=fault))
        return replace(item, state="accepted")


def _again(batch: Batch, item: BatchItem) -> BatchItem:
    """Return an item that waits for another attempt, if it has one left."""
    has_more = item.attempt % batch.attempts != 0
    return replace(item, state="waiting") if has_more else item


def _read_request(batch: Batch) -> RunRequest:
    record = RunRecord("", "", batch.owner, "", "", "queued", batch.request, batch.created_at)
    return replace(RunRequest.of(record), thread_id=None)


def _subtract(budget: Budget, used: BatchTotals) -> Budget | None:
    """Return what is left of a budget; None if some limit is used up."""
    left = {name: limit - getattr(used, name) for name, limit in asdict(budget).items() if limit is not None}
    return None if any(one <= 0 for one in left.values()) else Budget(**left)


@asynccontextmanager
async def open_batch_runner(store: Store, engine: Engine) -> AsyncGenerator[BatchRunner]:
    """Work on the server's batches until the end of the block."""
    runner = BatchRunner(store, engine, "server")
    async with background_task(_work(runner), "batches"):
        yield runner


async def _work(runner: BatchRunner) -> None:
    while True:
        is_busy = False
        try:
            is_busy = await runner.advance_all()
        except ManipleError as error:
            _LOG.warning("Batches could not be worked on: %s", error)
        except Exception:  # noqa: BLE001 - batches go on until the program ends
            _LOG.exception("A batch could not be worked on; it is tried again.")
        await asyncio.sleep(BUSY_SECONDS if is_busy else IDLE_SECONDS)
