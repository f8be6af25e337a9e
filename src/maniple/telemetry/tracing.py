"""Open what the settings ask for, and close it without losing the last spans."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler

from maniple.config.service_settings import LangSmithSettings, TelemetrySettings
from maniple.redaction import Redactor
from maniple.types import installing

FLUSH_SECONDS = 5.0
"""How long a collector that does not answer may hold up the end of the program."""
NOT_INSTALLED = (
    "No traces go to telemetry.otlp_endpoint: OpenTelemetry is not installed. "
    f"Install it: {installing('tracing')}; or leave the endpoint out."
)

_Maker = Callable[[str, str], BaseCallbackHandler]


class Tracing:
    """Makes the callbacks that trace one run."""

    def __init__(self, makers: tuple[_Maker, ...] = (), notices: tuple[str, ...] = ()) -> None:
        self._makers = makers
        self.notices = notices
        """One sentence for each tracer that is wanted and absent, with how to get it."""

    def callbacks(self, run_id: str, thread_id: str) -> list[BaseCallbackHandler]:
        """Return what goes into the run's `config["callbacks"]`; nothing when nobody traces."""
        return [make(run_id, thread_id) for make in self._makers]


@asynccontextmanager
async def open_tracing(settings: TelemetrySettings, redactor: Redactor) -> AsyncIterator[Tracing]:
    """Open the tracers; on leaving, what they still hold is sent.

    A collector that cannot be reached is the log's affair and never a run's.
    """
    async with AsyncExitStack() as stack:
        makers: list[_Maker] = []
        notices: list[str] = []
        if settings.otlp_endpoint:
            try:
                makers.append(await stack.enter_async_context(_open_otlp(settings, redactor)))
            except ImportError:
                notices.append(NOT_INSTALLED)
        if settings.langsmith.enabled:
            makers.append(await stack.enter_async_context(_open_langsmith(settings.langsmith, redactor)))
        yield Tracing(tuple(makers), tuple(notices))


@asynccontextmanager
async def _open_otlp(settings: TelemetrySettings, redactor: Redactor) -> AsyncIterator[_Maker]:
    provider = await asyncio.to_thread(_provider, settings)
    from maniple.telemetry.spans import RunSpanHandler

    tracer = provider.get_tracer("maniple")

    def spans(run_id: str, thread_id: str) -> BaseCallbackHandler:
        return RunSpanHandler(
            tracer, redactor, run_id=run_id, thread_id=thread_id, contents=settings.contents
        )

    try:
        yield spans
    finally:
        await _within(FLUSH_SECONDS, provider.shutdown)


def _provider(settings: TelemetrySettings) -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    address = (settings.otlp_endpoint or "").rstrip("/")
    if not address.endswith("/v1/traces"):
        address = f"{address}/v1/traces"
    headers = {name: secret.get_secret_value() for name, secret in settings.otlp_headers.items()}
    exporter = OTLPSpanExporter(endpoint=address, headers=headers, timeout=FLUSH_SECONDS)
    # Its own provider and not the global one: who embeds us may have set that up.
    resource = Resource.create({"service.name": settings.service_name})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


@asynccontextmanager
async def _open_langsmith(settings: LangSmithSettings, redactor: Redactor) -> AsyncIterator[_Maker]:
    client = await asyncio.to_thread(_langsmith_client, settings, redactor)
    import langsmith
    from langchain_core.tracers import LangChainTracer

    def tracer(run_id: str, thread_id: str) -> BaseCallbackHandler:
        names = {"run_id": run_id, "thread_id": thread_id}
        return LangChainTracer(client=client, project_name=settings.project, metadata=names)

    # With LANGSMITH_TRACING in the environment LangChain traces calls outside of runs by itself, through the
    # process's client: that has to redact, too. In a run it finds our tracer and adds none.
    langsmith.configure(client=client)
    try:
        yield tracer
    finally:
        langsmith.configure(client=None)
        await _within(FLUSH_SECONDS, lambda: client.close(timeout=FLUSH_SECONDS))


def _langsmith_client(settings: LangSmithSettings, redactor: Redactor) -> Any:
    from langsmith import Client
    from urllib3.util import Retry

    return Client(
        api_url=settings.endpoint,
        api_key=settings.api_key.get_secret_value() if settings.api_key else None,
        anonymizer=redactor.value,
        # Else it sends the variables of the environment whose names it knows.
        omit_traced_runtime_info=True,
        # Its threads outlive `close` by what they wait for an answer, and the program waits for them.
        timeout_ms=int(FLUSH_SECONDS * 1000),
        retry_config=Retry(total=1, backoff_factor=0.5),
    )


async def _within(seconds: float, close: Callable[[], Any]) -> None:
    """Close in a thread; one that takes longer is left to end by itself."""
    done, _ = await asyncio.wait({asyncio.ensure_future(asyncio.to_thread(close))}, timeout=seconds)
    for one in done:
        one.result()
