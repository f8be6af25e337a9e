"""Model calls for a run that its graph does not make."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig, RunnableLambda

from maniple.runs.engine_config import RunTelemetry
from maniple.scope.budget import UsageMeter
from maniple.scope.run_scope import SCOPE_KEY, RunScope
from maniple.store import RunRecord
from maniple.types import RUN_MARK

T = TypeVar("T")


async def call_beside_graph(
    name: str,
    work: Callable[[], Awaitable[T]],
    record: RunRecord,
    meter: UsageMeter,
    telemetry: RunTelemetry,
    *callbacks: BaseCallbackHandler,
) -> T:
    """Return the result of `work`, whose model calls are counted by `meter` and traced with the run.

    `name` is shown in traces.
    """

    async def call(_: object) -> T:
        return await work()

    config: RunnableConfig = {
        "run_name": name,
        "callbacks": [
            *meter.callbacks,
            *callbacks,
            *telemetry.callbacks(record.run_id, record.thread_id, False),
        ],
        "configurable": {SCOPE_KEY: RunScope(record.run_id, meter=meter)},
        "metadata": {RUN_MARK: record.run_id},
    }
    return await RunnableLambda(call).ainvoke(None, config)
