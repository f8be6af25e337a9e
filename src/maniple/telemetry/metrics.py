"""Prometheus metrics, derived from the events of runs and from the times when they wait and work."""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server
from prometheus_client.exposition import choose_encoder
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from maniple.telemetry.queue_metrics import QueueMetrics

_MAX_NAMES = 50
_MAX_NAME_LENGTH = 80
_RUN_SECONDS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
_APPEND_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
_MODEL_SECONDS = (0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300)


class ObservedEvent(Protocol):
    """An event of `maniple.events`; the other fields depend on its type."""

    type: ClassVar[str]


class Metrics:
    """The metrics of one process, in their own registry. Only the composition root creates one.

    Labels are limited: after 50 models or tools, further names count as `other`.
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        self._waiting: set[str] = set()
        self._begun: dict[str, float] = {}
        self._paused: set[str] = set()
        """Those of `_begun` that wait for a model or the store."""
        self._statuses: dict[str, str] = {}
        self._models, self._tools = _Names(), _Names()
        self._started = Counter("maniple_runs_started", "Runs that have started.", registry=registry)
        self._ended = Counter(
            "maniple_runs_ended", "Runs that ended or wait for an answer.", ["status"], registry=registry
        )
        self._running = Gauge("maniple_runs_running", "Runs in progress.", registry=registry)
        self._running.set_function(lambda: len(self._begun) - len(self._paused))
        self._queued = Gauge(
            "maniple_runs_queued",
            "Runs that wait: for their thread, a slot, or what is away.",
            registry=registry,
        )
        self._queued.set_function(lambda: len(self._waiting) + len(self._paused))
        self._run_seconds = Histogram(
            "maniple_run_seconds", "Duration of runs.", ["status"], buckets=_RUN_SECONDS, registry=registry
        )
        self._calls = Counter(
            "maniple_model_calls", "Answered model calls.", ["model", "agent"], registry=registry
        )
        self._tokens = Counter(
            "maniple_model_tokens",
            "Tokens, as reported by the endpoint.",
            ["model", "agent", "direction"],
            registry=registry,
        )
        self._call_seconds = Histogram(
            "maniple_model_call_seconds",
            "Duration of model calls.",
            ["model"],
            buckets=_MODEL_SECONDS,
            registry=registry,
        )
        self._tool_calls = Counter(
            "maniple_tool_calls", "Ended tool calls.", ["tool", "outcome"], registry=registry
        )
        self._errors = Counter("maniple_run_errors", "Errors sent to clients.", ["code"], registry=registry)
        self._append = Histogram(
            "maniple_store_append_seconds",
            "Time to store events.",
            buckets=_APPEND_SECONDS,
            registry=registry,
        )
        self._clients = Gauge("maniple_stream_clients", "Open event streams.", registry=registry)

    def add_queue(self) -> QueueMetrics:
        """Report a queue of runs as well; call it once."""
        return QueueMetrics(self._registry)

    def observe(self, event: ObservedEvent, run_id: str) -> None:
        """Count one event of a run; the last event ends the run, even if it never started."""
        if observer := _OBSERVERS.get(event.type):
            observer(self, event, run_id)

    def queue(self, run_id: str) -> None:
        """Count a waiting run."""
        self._waiting.add(run_id)

    def begin(self, run_id: str) -> None:
        """Count a working run, until its last event."""
        self._waiting.discard(run_id)
        self._begun[run_id] = time.monotonic()
        self._started.inc()

    def pause(self, run_id: str) -> None:
        """Count a working run among the waiting ones: what it needs is away."""
        if run_id in self._begun:
            self._paused.add(run_id)

    def resume(self, run_id: str) -> None:
        """Count a paused run among the working ones again."""
        self._paused.discard(run_id)

    def forget(self, run_id: str) -> None:
        """End a working run whose last event is missing. A waiting run is continued by another process."""
        if run_id in self._begun:
            self._end(None, run_id)
        self._waiting.discard(run_id)

    def storing(self) -> AbstractContextManager[Any]:
        """Return a context whose duration counts as storage of events."""
        return self._append.time()

    def client(self) -> AbstractContextManager[Any]:
        """Return a context that counts as an open event stream."""
        return self._clients.track_inprogress()

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """Return the metrics and their media type: OpenMetrics if `accept` requests it."""
        encode, media_type = choose_encoder(accept)
        return encode(self._registry), media_type

    @contextmanager
    def serving(self, host: str, port: int) -> Generator[int]:
        """Serve the metrics over HTTP from a thread; yield the port, a free one for 0. Raises `OSError`."""
        server, thread = start_http_server(port, host, self._registry)
        try:
            yield server.server_port
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def _usage(self, event: Any, run_id: str) -> None:
        model, agent = self._models.limit(event.model), event.agent_name
        self._calls.labels(model, agent).inc()
        self._tokens.labels(model, agent, "input").inc(event.input_tokens)
        self._tokens.labels(model, agent, "output").inc(event.output_tokens)
        self._call_seconds.labels(model).observe(event.seconds)

    def _tool(self, event: Any, run_id: str) -> None:
        # The text of a failure for models; events have no other sign of it.
        failed = event.tool_result.startswith(f"{event.tool_name} failed: ")
        tool = self._tools.limit(event.tool_name)
        self._tool_calls.labels(tool, "failed" if failed else "returned").inc()

    def _error(self, event: Any, run_id: str) -> None:
        self._errors.labels(event.code).inc()

    def _status(self, event: Any, run_id: str) -> None:
        self._statuses[run_id] = event.status

    def _end(self, event: Any, run_id: str) -> None:
        status = self._statuses.pop(run_id, "unknown")
        self._ended.labels(status).inc()
        self._waiting.discard(run_id)
        self._paused.discard(run_id)
        began = self._begun.pop(run_id, None)
        if began is not None:
            self._run_seconds.labels(status).observe(time.monotonic() - began)


_OBSERVERS: Mapping[str, Callable[[Metrics, Any, str], None]] = {
    "usage": Metrics._usage,
    "tool_call_result": Metrics._tool,
    "error": Metrics._error,
    "run_status": Metrics._status,
    "final_session_state": Metrics._end,
}


class _Names:
    """Limits the number of label values, because servers and models choose them.

    Further names become `other`.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()

    def limit(self, name: str) -> str:
        name = name[:_MAX_NAME_LENGTH] or "unknown"
        if name not in self._known:
            if len(self._known) >= _MAX_NAMES:
                return "other"
            self._known.add(name)
        return name
