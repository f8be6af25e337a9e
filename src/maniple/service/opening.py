"""The objects that a service opens at its start."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, fields

from maniple.app import App, open_app
from maniple.batches import open_batch_runner
from maniple.config import Settings
from maniple.crawler.http_client import GuardedTransport
from maniple.egress import AddressGuard
from maniple.egress.certificates import tls_context
from maniple.events import RunViewReader
from maniple.llms.embedded import Progress
from maniple.runs import RunUsageReader
from maniple.schedules import open_scheduler
from maniple.service.callers import KeyWatch
from maniple.service.deletion import open_sweeper
from maniple.service.readiness import ModelReach, open_reach
from maniple.service.views import STEP_EVENTS
from maniple.types import EngineRole
from maniple.webhooks import WebhookTargets, load_webhook_key, open_webhook_sender


@dataclass(frozen=True, slots=True, kw_only=True)
class Service(App):
    """The open service: the application, and what its protocols need."""

    key_watch: KeyWatch
    spending: RunUsageReader
    step_views: RunViewReader
    """The states of runs, as far as they concern questions of steps."""
    reach: ModelReach | None
    """Checks whether the models' endpoints answer; None for the embedded model."""
    webhook_targets: WebhookTargets
    webhook_key: bytes = field(repr=False)
    """The key of the secrets of webhooks."""
    model_change: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)
    """Held while another model is connected."""


@asynccontextmanager
async def open_service(
    settings: Settings, progress: Progress | None = None, *, alone: bool = True, role: EngineRole = "all"
) -> AsyncGenerator[Service]:
    """Open the application as a server and close it again; raises the `ManipleError` that prevents it.

    `alone`: this is the only server of its database; a process with False runs beside that server.
    """
    async with (
        open_app(settings, kind="server", progress=progress, alone=alone, role=role) as app,
        open_reach(app.runtime) as reach,
        AsyncExitStack() as stack,
    ):
        guard = AddressGuard(settings.fetch)
        webhook_key = await asyncio.to_thread(_load_key, settings)
        if alone:  # a process beside the server leaves schedules, batches and webhooks to it
            await stack.enter_async_context(open_scheduler(app.store, app.engine))
            await stack.enter_async_context(open_batch_runner(app.store, app.engine))
            transport = GuardedTransport(guard, await asyncio.to_thread(tls_context))
            await stack.enter_async_context(open_webhook_sender(app.store.webhooks, transport, webhook_key))
            await stack.enter_async_context(open_sweeper(app))
        yield Service(
            **{field.name: getattr(app, field.name) for field in fields(app)},
            key_watch=KeyWatch(app.store.keys),
            spending=RunUsageReader(app.store.events, app.engine_config.prices),
            step_views=RunViewReader(app.store.events, STEP_EVENTS),
            reach=reach,
            webhook_targets=WebhookTargets(app.store.webhooks, guard),
            webhook_key=webhook_key,
        )


def _load_key(settings: Settings) -> bytes:
    """Return the key of webhooks; of a store that is deleted at the end, it is not stored either. Blocks."""
    return os.urandom(32) if settings.store.backend == "memory" else load_webhook_key(settings.data_dir)
