"""OpenTelemetry spans of a run, from LangChain's callbacks: the run, its agents, model calls and tools.

Names and attributes are those of OpenTelemetry's semantic conventions for generative AI
(https://opentelemetry.io/docs/specs/semconv/gen-ai/). Maniple's events are not used, because they
serialize agents that work concurrently, so that times would be wrong.
"""

import asyncio
import hashlib
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langgraph.errors import GraphBubbleUp
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
)

from maniple.errors import describe_error
from maniple.langgraph_internals import is_node
from maniple.redaction import Redactor
from maniple.types import AGENT_MARK

_LONGEST = 8_000
"""The limit of one content in characters, because collectors reject large spans."""


_TRACE_BYTES, _SPAN_BYTES = 16, 8
_CHOSEN: ContextVar[SpanContext | None] = ContextVar("chosen span", default=None)


class RunSpanIds(RandomIdGenerator):
    """Random ids, but for the first span of a run: `name_first_span`."""

    def generate_trace_id(self) -> int:
        """Return the id of a new trace."""
        chosen = _CHOSEN.get()
        return chosen.trace_id if chosen else super().generate_trace_id()

    def generate_span_id(self) -> int:
        """Return the id of a new span."""
        chosen = _CHOSEN.get()
        return chosen.span_id if chosen else super().generate_span_id()


def name_first_span(run_id: str) -> SpanContext:
    """Return the ids of the span of a run's first attempt.

    They follow from the run: whoever takes it over, on whatever machine, links to that span.
    """
    digest = hashlib.sha256(run_id.encode()).digest()
    trace, span = digest[:_TRACE_BYTES], digest[_TRACE_BYTES : _TRACE_BYTES + _SPAN_BYTES]
    sampled = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(int.from_bytes(trace), int.from_bytes(span), is_remote=True, trace_flags=sampled)


class RunSpanHandler(BaseCallbackHandler):
    """Traces one attempt of a run. Every text in a span is redacted.

    Later attempts, and calls beside the graph, link to the first one (`is_first`).
    """

    run_inline = True

    def __init__(
        self,
        tracer: Tracer,
        redactor: Redactor,
        *,
        run_id: str,
        thread_id: str,
        is_first: bool,
        contents: bool = False,
    ) -> None:
        self._first = name_first_span(run_id)
        self._is_first = is_first
        self._tracer = tracer
        self._redactor = redactor
        self._ids = {"maniple.run_id": run_id, "gen_ai.conversation.id": thread_id}
        self._contents = contents
        self._spans: dict[UUID, Span] = {}
        self._inside: dict[UUID, Span] = {}
        # The wall clock is read once: if it is set back during the run, spans would end before they begin.
        self._clock_offset_ns = time.time_ns() - time.monotonic_ns()

    def on_chain_start(
        self, serialized: dict[str, Any] | None, inputs: Any, *, run_id: UUID, **more: Any
    ) -> None:
        """Begin the span of a graph or an agent's node; other chains have none."""
        parent = self._parent(more)
        agent = _agent_of_node(more)
        if parent is None:
            self._begin(run_id, "run", None, {"gen_ai.operation.name": "invoke_workflow"})
        elif agent:
            attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
            self._begin(run_id, f"invoke_agent {agent}", parent, attributes)
        else:
            self._inside[run_id] = parent

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **more: Any) -> None:
        """End the span of a chain."""
        self._inside.pop(run_id, None)
        self._end(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """End the span of a chain that failed, was cancelled or is paused."""
        self._inside.pop(run_id, None)
        self._fail(run_id, error)

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **more: Any
    ) -> None:
        """Begin the span of a model call."""
        metadata = more.get("metadata") or {}
        model = str(metadata.get("ls_model_name") or "unknown")
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": model,
            "gen_ai.provider.name": str(metadata.get("ls_provider") or "unknown"),
            "gen_ai.agent.name": str(metadata.get(AGENT_MARK) or ""),
        }
        self._begin(run_id, f"chat {model}", self._parent(more), attributes, SpanKind.CLIENT)
        prompt = "\n\n".join(f"{one.type}: {one.text}" for batch in messages for one in batch)
        self._content(run_id, "gen_ai.input.messages", prompt)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **more: Any) -> None:
        """End the span of a model call with its answer and usage."""
        if (span := self._spans.get(run_id)) and (answer := _answer(response)):
            if usage := answer.usage_metadata:
                span.set_attribute("gen_ai.usage.input_tokens", usage["input_tokens"])
                span.set_attribute("gen_ai.usage.output_tokens", usage["output_tokens"])
                cached = (usage.get("input_token_details") or {}).get("cache_read", 0)
                span.set_attribute("gen_ai.usage.cache_read.input_tokens", cached)
            metadata = answer.response_metadata
            self._set(span, "gen_ai.response.model", str(metadata.get("model_name") or ""))
            self._set(span, "gen_ai.response.finish_reasons", str(metadata.get("finish_reason") or ""))
            self._content(run_id, "gen_ai.output.messages", answer.text)
        self._end(run_id)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """End the span of a failed model call."""
        self._fail(run_id, error)

    def on_tool_start(
        self, serialized: dict[str, Any] | None, input_str: str, *, run_id: UUID, **more: Any
    ) -> None:
        """Begin the span of a tool call."""
        tool = str((serialized or {}).get("name") or more.get("name") or "unknown")
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
        self._begin(run_id, f"execute_tool {tool}", self._parent(more), attributes)
        self._content(run_id, "gen_ai.tool.call.arguments", input_str)

    def on_tool_end(self, output: Any, *, run_id: UUID, **more: Any) -> None:
        """End the span of a tool call; a failure that the model reads is an error."""
        span = self._spans.get(run_id)
        result = output.text if isinstance(output, ToolMessage) else str(output)
        self._content(run_id, "gen_ai.tool.call.result", result)
        if span and isinstance(output, ToolMessage) and output.status == "error":
            self._error(span, "ToolFailure", result)
        self._end(run_id)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """End the span of a tool call that raised."""
        self._fail(run_id, error)

    def _parent(self, more: Mapping[str, Any]) -> Span | None:
        above = more.get("parent_run_id")
        return None if above is None else self._spans.get(above) or self._inside.get(above)

    def _begin(
        self,
        run_id: UUID,
        name: str,
        parent: Span | None,
        attributes: Mapping[str, str],
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        context = set_span_in_context(parent) if parent else None
        links = [Link(self._first)] if not (parent or self._is_first) else []
        with _choosing(self._first if self._is_first and not parent else None):
            span = self._tracer.start_span(
                self._redactor.text(name), context, kind, links=links, start_time=self._now_ns()
            )
        for key, value in {**attributes, **self._ids}.items():
            self._set(span, key, value)
        self._spans[run_id] = span

    def _set(self, span: Span, name: str, value: str) -> None:
        if value:
            span.set_attribute(name, self._redactor.text(value))

    def _content(self, run_id: UUID, name: str, value: str) -> None:
        span = self._spans.get(run_id)
        if self._contents and span:
            # Redacted before it is cut, because a cut secret is not recognised.
            span.set_attribute(name, self._redactor.text(value)[:_LONGEST])

    def _fail(self, run_id: UUID, error: BaseException) -> None:
        span = self._spans.get(run_id)
        if span and isinstance(error, asyncio.CancelledError):
            span.set_attribute("maniple.cancelled", True)
        elif span and isinstance(error, GraphBubbleUp):
            span.set_attribute("maniple.interrupted", True)
        elif span:
            self._error(span, type(error).__name__, describe_error(error))
        self._end(run_id)

    def _error(self, span: Span, kind: str, message: str) -> None:
        span.set_attribute("error.type", kind)
        span.set_status(Status(StatusCode.ERROR, self._redactor.text(message)[:_LONGEST]))

    def _end(self, run_id: UUID) -> None:
        if span := self._spans.pop(run_id, None):
            span.end(self._now_ns())

    def _now_ns(self) -> int:
        return self._clock_offset_ns + time.monotonic_ns()


@contextmanager
def _choosing(chosen: SpanContext | None) -> Generator[None]:
    token = _CHOSEN.set(chosen)
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def _agent_of_node(more: Mapping[str, Any]) -> str:
    """Return the agent whose node starts, else "". The graph inside of an agent's node has the same name."""
    agent = (more.get("metadata") or {}).get(AGENT_MARK)
    begins_node = more.get("name") == agent and is_node(more.get("tags"))
    return agent if isinstance(agent, str) and begins_node else ""


def _answer(response: LLMResult) -> AIMessage | None:
    first = next((one for generations in response.generations for one in generations), None)
    message = first.message if isinstance(first, ChatGeneration) else None
    return message if isinstance(message, AIMessage) else None
