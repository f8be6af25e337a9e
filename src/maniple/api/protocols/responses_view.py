"""A segment of a run as one response of OpenAI's Responses: its events, and the response itself.

Source: https://platform.openai.com/docs/api-reference/responses-streaming
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from maniple.api.protocols.functions import write_arguments
from maniple.events import (
    Event,
    RunInterrupted,
    RunView,
    SessionState,
    ToolCalled,
    ToolReturned,
    event_of,
)
from maniple.scope.client_tools import ClientCall
from maniple.service.answer_pieces import AnswerPiece, AnswerPieces
from maniple.store import EventRecord, RunRecord

Json = dict[str, Any]
_SEARCHES = frozenset(("tavily_search",))
_CODE = "python_repl_tool"
_CITED = re.compile(r"\[([^\]\n]{1,200})\]\((https?://[^\s()]{1,2000})\)")
_PARTS = {"message": "content", "reasoning": "summary"}
_TEXTS = {"message": "response.output_text", "reasoning": "response.reasoning_summary_text"}
_PART_EVENTS = {"message": "response.content_part", "reasoning": "response.reasoning_summary_part"}
_STATUSES: dict[str, str] = {
    "queued": "queued",
    "running": "in_progress",
    "completed": "completed",
    "interrupted": "completed",
    "budget_exhausted": "incomplete",
    "failed": "failed",
    "cancelled": "cancelled",
}


@dataclass(frozen=True, slots=True)
class ResponseName:
    """The id of a response: the run, and the event after which its segment begins."""

    run_id: str
    after: int = 0
    is_stored: bool = True
    """False: the response lasts as long as its socket, and the id names nothing elsewhere."""

    def __str__(self) -> str:
        after = f"_{self.after}" if self.after else ""
        return f"resp_{self.run_id}{after}{'' if self.is_stored else '_unstored'}"

    @classmethod
    def of(cls, text: str) -> "ResponseName | None":
        """Return the name that a text is; None for any other text."""
        found = re.fullmatch(r"resp_([A-Za-z0-9-]{1,100})(?:_(\d{1,15}))?", text)
        return cls(found[1], int(found[2] or 0)) if found else None


@dataclass(slots=True)
class ResponseView:
    """Turns the records of a segment into the events of a response. Equal records give equal events."""

    name: ResponseName
    base: Json
    """The fields of the response that do not change."""
    output: list[Json] = field(default_factory=list[Json])
    pieces: AnswerPieces = field(default_factory=AnswerPieces)
    has_ended: bool = False
    _open: int | None = None
    """The index of the message or the summary that is being written."""
    _ended_at: float | None = None
    _calls: dict[str, int] = field(default_factory=dict[str, int])
    """The indices of the tool calls at work."""
    _number: int = 0

    @property
    def run_view(self) -> RunView:
        """The run so far."""
        return self.pieces.view

    def begin(self) -> Iterator[Json]:
        """Yield the first events."""
        begun: Json = {**self.base, "status": "in_progress", "output": [], "usage": None}
        begun |= {"completed_at": None, "error": None, "incomplete_details": None}
        for kind in ("response.created", "response.in_progress"):
            yield self._event(kind, response=begun)

    def feed(self, record: EventRecord) -> Iterator[Json]:
        """Yield the events that follow from the next record of the log."""
        if self.has_ended:
            return
        for piece in self.pieces.feed(record):
            yield from self._write(piece)
        if record.type == RunInterrupted.type:
            yield from self._call_client(event_of(record))
        if record.type in (ToolCalled.type, ToolReturned.type):
            yield from self._tool(event_of(record))
        self.has_ended = record.type == SessionState.type
        self._ended_at = record.at

    def end(self, run: RunRecord) -> Iterator[Json]:
        """Yield the last events, given the run as it is at the end."""
        if rest := self.pieces.unsent:
            yield from self._write(AnswerPiece("answer", rest))
        yield from self._close()
        for place in self._calls.values():
            self.output[place]["status"] = "incomplete"
            yield self._event("response.output_item.done", output_index=place, item=self.output[place])
        self._calls = {}
        response = self.response(run)
        kind = response["status"] if response["status"] in ("failed", "incomplete") else "completed"
        yield self._event(f"response.{kind}", response=response)

    def response(self, run: RunRecord) -> Json:
        """Return the response so far, or at its end."""
        status = _STATUSES[self.run_view.status or run.status]
        failure = self.run_view.failure
        error: Json | None = None
        if status == "failed" and self.run_view.has_answer:
            status = "completed"
        if status in ("failed", "cancelled"):
            message = failure.message if failure else run.error or f"The run was {run.status}."
            error = {"code": (failure.code if failure else run.error_code) or run.status, "message": message}
        has_ended = status not in ("queued", "in_progress")
        return {
            **self.base,
            "status": status,
            "completed_at": int(self._ended_at or run.created_at) if status == "completed" else None,
            "error": error,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "output": self.output,
            "usage": make_usage(self.run_view) if has_ended else None,
        }

    def _event(self, kind: str, **fields: Any) -> Json:
        event = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return event

    def _add(self, item: Json) -> Iterator[Json]:
        self.output.append(item)
        yield self._event("response.output_item.added", output_index=len(self.output) - 1, item={**item})

    def _write(self, piece: AnswerPiece) -> Iterator[Json]:
        if piece.kind == "progress" and self.pieces.sent:
            return  # the answer is the last item
        kind = "message" if piece.kind == "answer" else "reasoning"
        if self._open is None or self.output[self._open]["type"] != kind:
            yield from self._close()
            yield from self._begin_text(kind)
        assert self._open is not None
        item = self.output[self._open]
        item[_PARTS[kind]][0]["text"] += piece.text
        more: Json = {"logprobs": []} if kind == "message" else {}
        yield self._text_event(f"{_TEXTS[kind]}.delta", item, delta=piece.text, **more)

    def _begin_text(self, kind: Literal["message", "reasoning"]) -> Iterator[Json]:
        place = len(self.output)
        item: Json = {"type": kind, "id": f"{kind[:3]}_{self.name.run_id}_{self.name.after}_{place}"}
        part: Json = {"type": "summary_text", "text": ""}
        if kind == "message":
            item |= {"status": "in_progress", "role": "assistant", "phase": "final_answer"}
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        item[_PARTS[kind]] = []
        yield from self._add(item)
        item[_PARTS[kind]] = [part]
        self._open = place
        yield self._text_event(f"{_PART_EVENTS[kind]}.added", item, part={**part})

    def _close(self) -> Iterator[Json]:
        if self._open is None:
            return
        place, self._open = self._open, None
        item = self.output[place]
        kind = item["type"]
        part = item[_PARTS[kind]][0]
        more: Json = {}
        if kind == "message":
            part["annotations"] = find_citations(part["text"])
            item["status"], more["logprobs"] = "completed", []
        yield self._text_event(f"{_TEXTS[kind]}.done", item, place, text=part["text"], **more)
        yield self._text_event(f"{_PART_EVENTS[kind]}.done", item, place, part=part)
        yield self._event("response.output_item.done", output_index=place, item=item)

    def _text_event(self, kind: str, item: Json, place: int | None = None, **fields: Any) -> Json:
        index = "content_index" if item["type"] == "message" else "summary_index"
        at = {"item_id": item["id"], "output_index": self._open if place is None else place, index: 0}
        return self._event(kind, **at, **fields)

    def _call_client(self, event: Event) -> Iterator[Json]:
        """Yield the item of a call that the client is asked to run; nothing for any other question."""
        call = ClientCall.of(event.payload) if isinstance(event, RunInterrupted) else None
        if call is None:
            return
        yield from self._close()
        at, arguments = {"output_index": len(self.output)}, write_arguments(call)
        item: Json = {"type": "function_call", "id": f"fc_{call.call_id}", "status": "in_progress"}
        item |= {"call_id": call.call_id, "name": call.name, "arguments": ""}
        yield from self._add(item)
        at["item_id"] = item["id"]
        yield self._event("response.function_call_arguments.delta", **at, delta=arguments)
        yield self._event("response.function_call_arguments.done", **at, arguments=arguments)
        item |= {"status": "completed", "arguments": arguments}
        yield self._event("response.output_item.done", output_index=at["output_index"], item=item)

    def _tool(self, event: Event) -> Iterator[Json]:
        if isinstance(event, ToolReturned):
            if (place := self._calls.pop(event.tool_call_id, None)) is not None:
                item = self.output[place]
                item["status"] = "completed"
                if item["type"] == "code_interpreter_call":
                    item["outputs"] = [{"type": "logs", "logs": event.tool_result}]
                yield self._event("response.output_item.done", output_index=place, item=item)
            return
        if isinstance(event, ToolCalled) and (item := _call_item(event, self.name)):
            self._calls[event.tool_call_id] = len(self.output)
            yield from self._add(item)


def _call_item(event: ToolCalled, name: ResponseName) -> Json | None:
    """Return a tool call as an item of the output; None for a tool that OpenAI has no item for."""
    if event.tool_name in _SEARCHES:
        query = str(event.tool_input.get("query", ""))
        item: Json = {"type": "web_search_call", "id": f"ws_{event.tool_call_id}", "status": "in_progress"}
        return item | {"action": {"type": "search", "query": query, "queries": [query]}}
    if event.tool_name == _CODE:
        code = str(event.tool_input.get("code", ""))
        item = {"type": "code_interpreter_call", "id": f"ci_{event.tool_call_id}", "status": "in_progress"}
        return item | {"code": code, "container_id": name.run_id, "outputs": None}
    return None


def find_citations(text: str) -> list[Json]:
    """Return the links of an answer as annotations, with their places in characters."""
    found: list[Json] = []
    for one in _CITED.finditer(text):
        place = {"start_index": one.start(), "end_index": one.end()}
        found.append({"type": "url_citation", **place, "url": one[2], "title": one[1]})
    return found


def make_usage(view: RunView) -> Json:
    """Return the usage; the schema requires two counts that the team does not have, which are 0."""
    used = view.usage
    return {
        "input_tokens": used.input_tokens,
        "input_tokens_details": {"cached_tokens": used.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": used.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used.input_tokens + used.output_tokens,
    }


def frame(event: Json) -> bytes:
    """Return an event as a frame of server-sent events."""
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
