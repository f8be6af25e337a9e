"""Opens the configured tracers, and closes them without losing the last spans."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler

from maniple.config.service_settings import LangSmithSettings, TelemetrySettings
from maniple.installation import installing
from maniple.redaction import Redactor

FLUSH_SECONDS = 5.0
"""The time limit for a collector to answer at the end of the program."""
_NOT_INSTALLED = (
    "No traces go to telemetry.otlp_endpoint: OpenTelemetry is not installed. "
    "Install it: {command}; or leave the endpoint out."
)

_Maker = Callable[[str, str, bool], BaseCallbackHandler]


class Tracing:
    """Creates the callbacks that trace one run."""

    def __init__(self, makers: tuple[_Maker, ...] = (), notices: tuple[str, ...] = ()) -> None:
        self._makers = makers
        self.notices = notices
        """One sentence for each configured tracer that is unavailable, with how to install it."""

    def callbacks(self, run_id: str, thread_id: str, is_first: bool) -> list[BaseCallbackHandler]:
        """Return the callbacks for the run's `config["callbacks"]`; empty if tracing is off.

        `is_first` tells that the run begins, and was not taken over, resumed or tried again.
        """
        return [make(run_id, thread_id, is_first) for make in self._makers]


@asynccontextmanager
async def open_tracing(settings: TelemetrySettings, redactor: Redactor) -> AsyncIterator[Tracing]:
    """Open the tracers; on leaving, their remaining spans are sent.

    An unreachable collector is logged and does not affect runs.
    """
    async with AsyncExitStack() as stack:
        makers: list[_Maker] = []
        notices: list[str] = []
        if settings.otlp_endpoint:
            try:
                makers.append(await stack.enter_async_context(_open_otlp(settings, redactor)))
            except ImportError:
                notices.append(_NOT_INSTALLED.format(command=installing("tracing")))
        if settings.langsmith.enabled:
            makers.append(await stack.enter_async_context(_open_langsmith(settings.langsmith, redactor)))
        yield Tracing(tuple(makers), tuple(notices))


@asynccontextmanager
async def _open_otlp(settings: TelemetrySettings, redactor: Redactor) -> AsyncIterator[_Maker]:
    provider = await asyncio.to_thread(_provider, settings)
    from maniple.telemetry.spans import RunSpanHandler

    tracer = provider.get_tracer("maniple")

    def spans(run_id: str, thread_id: str, is_first: bool) -> BaseCallbackHandler:
        return RunSpanHandler(
            tracer,
            redactor,
            run_id=run_id,
            thread_id=thread_id,
            is_first=is_first,
            contents=settings.contents,
        )

    try:
        yield spans
    finally:
        await _close_within(FLUSH_SECONDS, provider.shutdown)


def _provider(settings: TelemetrySettings) -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from maniple.telemetry.spans import RunSpanIds

    address = (settings.otlp_endpoint or "").rstrip("/")
    if not address.endswith("/v1/traces"):
        address = f"{address}/v1/traces"
    headers = {name: secret.get_secret_value() for name, secret in settings.otlp_headers.items()}
    exporter = OTLPSpanExporter(endpoint=address, headers=headers, timeout=FLUSH_SECONDS)
    # Not the global provider, which an embedding program may have configured.
    resource = Resource.create({"service.name": settings.service_name})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False, id_generator=RunSpanIds())
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


@asynccontextmanager
async def _open_langsmith(settings: LangSmithSettings, redactor: Redactor) -> AsyncIterator[_Maker]:
    client = await asyncio.to_thread(_langsmith_client, settings, redactor)
    import langsmith
    from langchain_core.tracers import LangChainTracer

    def tracer(run_id: str, thread_id: str, is_first: bool) -> BaseCallbackHandler:
        names = {"run_id": run_id, "thread_id": thread_id}
        return LangChainTracer(client=client, project_name=settings.project, metadata=names)

    # With LANGSMITH_TRACING in the environment, LangChain traces calls outside of runs itself, with the
    # process's default client, which must redact, too. Within a run it finds this tracer and adds none.
    langsmith.configure(client=client)
    try:
        yield tracer
    finally:
        langsmith.configure(client=None)
        await _close_within(FLUSH_SECONDS, lambda: client.close(timeout=FLUSH_SECONDS))


def _langsmith_client(settings: LangSmithSettings, redactor: Redactor) -> Any:
    from langsmith import Client
    from urllib3.util import Retry

    return Client(
        api_url=settings.endpoint,
        api_key=settings.api_key.get_secret_value() if settings.api_key else None,
        anonymizer=redactor.value,
        # Otherwise the client sends environment variables whose names it knows.
        omit_traced_runtime_info=True,
        # The client's threads may still wait for an answer after `close`, and the program waits for the
        # threads.
        timeout_ms=int(FLUSH_SECONDS * 1000),
        retry_config=Retry(total=1, backoff_factor=0.5),
    )


async def _close_within(seconds: float, close: Callable[[], Any]) -> None:
    """Run `close` in a thread; after `seconds` it is no longer waited for."""
    done, _ = await asyncio.wait({asyncio.ensure_future(asyncio.to_thread(close))}, timeout=seconds)
    for one in done:
        one.result()
