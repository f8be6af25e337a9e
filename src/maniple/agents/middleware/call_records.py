"""What a tool gave, as the ledger keeps it: a message, or commands with their updates of the graph's state.

Written as JSON in plain words, and not by LangGraph's serializer, so that secrets can be taken out of it.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage, message_to_dict, messages_from_dict
from langgraph.errors import GraphInterrupt
from langgraph.types import Command, Send, interrupt

from maniple.agents.middleware.base import ToolAnswer
from maniple.agents.run_scope import task_key
from maniple.store.protocols import ToolCallLedger

Answer = ToolAnswer | list[ToolAnswer]
"""What LangGraph takes from a tool."""

AUTHOR_KEY = "said_by"
"""Marks a tool's message, or the metadata of a tool, whose words are the user's or ours, no data."""

_NO_WORDS = "{name} did its work before this program was restarted. What it changed in the state is lost."


def encode_answer(answer: Answer, name: str, tool_call_id: str) -> dict[str, Any]:
    """Return `answer` for the ledger.

    Of commands that JSON cannot hold, such as those with objects of the tool's own, only the words to the
    model are kept: the tool is not run again, and its update of the state is lost with the process.
    """
    message = _words_of(answer, name, tool_call_id)
    record: dict[str, Any] = {"status": message.status, "content": message.content}
    if AUTHOR_KEY in message.additional_kwargs:
        record[AUTHOR_KEY] = message.additional_kwargs[AUTHOR_KEY]
    if isinstance(answer, ToolMessage):
        return record
    try:
        written = _written(answer)
        whole = _read(json.loads(json.dumps(written))) == answer
    except (TypeError, ValueError):
        return record
    return {**record, "commands": written} if whole else record


def decode_answer(record: Mapping[str, Any], name: str, tool_call_id: str) -> Answer:
    """Return what a record of the ledger was made from."""
    if "commands" in record:
        return _read(record["commands"])
    message = ToolMessage(record["content"], tool_call_id=tool_call_id, name=name, status=record["status"])
    if AUTHOR_KEY in record:
        message.additional_kwargs[AUTHOR_KEY] = record[AUTHOR_KEY]
    return message


def _words_of(answer: Answer, name: str, tool_call_id: str) -> ToolMessage:
    for one in answer if isinstance(answer, list) else [answer]:
        update = one.update if isinstance(one, Command) else None
        messages = update.get("messages") if isinstance(update, Mapping) else [one]
        for message in messages if isinstance(messages, list) else [messages]:
            if isinstance(message, ToolMessage) and message.tool_call_id == tool_call_id:
                return message
    return ToolMessage(_NO_WORDS.format(name=name), tool_call_id=tool_call_id, name=name)


def _written(value: Any) -> Any:
    """Return a tree for JSON in which each object says its kind: `{KIND: …}`."""
    match value:
        case Command():
            parts = (value.graph, value.update, value.resume, value.goto)
            return {"command": [_written(part) for part in parts]}
        case Send():
            return {"send": [value.node, _written(value.arg)]}
        case BaseMessage():
            return {"message": message_to_dict(value)}
        case dict():
            return {"dict": [[_written(key), _written(one)] for key, one in value.items()]}
        case tuple():
            return {"tuple": [_written(one) for one in value]}
        case list():
            return [_written(one) for one in value]
        case str() | int() | float() | None:
            return value
        case _:
            raise TypeError(f"{type(value).__name__} is not kept in the ledger")


def _read(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_read(one) for one in tree]
    if not isinstance(tree, dict):
        return tree
    ((kind, value),) = tree.items()
    match kind:
        case "message":
            return messages_from_dict([value])[0]
        case "dict":
            return {_read(key): _read(one) for key, one in value}
        case "tuple":
            return tuple(_read(one) for one in value)
        case "send":
            return Send(value[0], _read(value[1]))
        case _:
            graph, update, resume, goto = (_read(one) for one in value)
            return Command(graph=graph, update=update, resume=resume, goto=goto)


_PAUSED = "paused"
_PREMATURE = "premature"
_QUESTION = "question about "
_LOST = "!lost"


@dataclass(frozen=True, slots=True)
class CallAttempt:
    """One try of a call, begun just now or by an earlier execution of its task."""

    number: int
    arguments: dict[str, Any]
    is_new: bool
    result: Mapping[str, Any] | None

    @property
    def is_paused(self) -> bool:
        """Whether the tool itself interrupted the run: what was answered, it learns when it runs again."""
        return self.result is not None and self.result["status"] == _PAUSED

    @property
    def is_unknown(self) -> bool:
        """Whether nobody knows if the tool did its work: it was begun and never ended."""
        return self.result is None and not self.is_new


@dataclass(slots=True)
class CallRecords:
    """The ledger's rows about one call: one for each try, one for each question to the user.

    They are named `KEY`, `KEY#2`, … and `KEY?approval1`, …, where `KEY` is the graph's task and the model's
    `tool_call_id`: endpoints repeat such ids within a run.
    """

    ledger: ToolCallLedger
    run_id: str
    tool_name: str
    tool_call_id: str
    _asked: Counter[str] = field(default_factory=Counter)
    _is_aligned: bool = False

    @property
    def key(self) -> str:
        """The name of the first try's row."""
        return f"{task_key()}:{self.tool_call_id}"

    async def earlier(self) -> int | None:
        """Return how many calls of this tool the run began so far; `None` if this one is among them."""
        rows = await self.ledger.list_by_run(self.run_id)
        first = {row.tool_call_id for row in rows if row.tool_name == self.tool_name}
        first = {key for key in first if not key.rpartition("#")[2].isdigit()}
        return None if self.key in first else len(first)

    async def knows(self, number: int) -> bool:
        """Say whether a try was begun already."""
        key = self._try_key(number)
        return any(row.tool_call_id == key for row in await self.ledger.list_by_run(self.run_id))

    async def begin(self, number: int, arguments: Mapping[str, Any]) -> CallAttempt:
        """Record the intent, or return what is recorded of this try."""
        row = await self._begin(self._try_key(number), self.tool_name, arguments)
        result = json.loads(row.result) if row.result is not None else None
        return CallAttempt(number, json.loads(row.arguments), row.attempts == 1, result)

    async def end(self, number: int, answer: Answer) -> None:
        """Record the result of a try: what the tool gave, its failure, or the user's words."""
        result = encode_answer(answer, self.tool_name, self.tool_call_id)
        await self.ledger.end(self.run_id, self._try_key(number), _json(result))

    async def pause(self, number: int) -> None:
        """Record that the tool interrupted the run, so that it is executed again without a question."""
        await self.ledger.end(self.run_id, self._try_key(number), _json({"status": _PAUSED}))

    async def ask(self, payload: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Interrupt the run with `payload`; return the answer and the payload that it was given for.

        LangGraph executes a task again from its start and hands answers out by their order alone. So the row
        keeps what was shown: an answer never counts for other arguments. And an answer that is there before
        its question was shown, left over from another one, counts for nothing.
        """
        await self.align()
        reason = payload["reason"]
        while True:
            self._asked[reason] += 1
            key = f"{self.key}?{reason}{self._asked[reason]}"
            row = await self._begin(key, f"{_QUESTION}{self.tool_name}", payload)
            shown = json.loads(row.arguments)
            if row.result is not None:
                known = json.loads(row.result)
            else:
                known = {_PREMATURE if row.attempts == 1 else "answer": interrupt(shown)}
                await self.ledger.end(self.run_id, key, _json(known))
            if "answer" in known:
                return known["answer"], shown

    async def align(self) -> None:
        """Take from LangGraph every answer that is on record, so that its next one is the next question's.

        After a crash LangGraph has lost the answers of its last execution. That is noted: from then on the
        place in its order belongs to another question.
        """
        if self._is_aligned:
            return
        self._is_aligned = True
        questions = f"{self.key}?"
        rows = await self.ledger.list_by_run(self.run_id)
        rows = [row for row in rows if row.tool_call_id.startswith(questions)]
        lost = {row.tool_call_id for row in rows if row.tool_call_id.endswith(_LOST)}
        for row in rows:
            mark = f"{row.tool_call_id}{_LOST}"
            if row.result is not None and mark not in lost:
                try:
                    interrupt(json.loads(row.arguments))
                except GraphInterrupt:
                    await self._begin(mark, row.tool_name, {})

    def _try_key(self, number: int) -> str:
        return self.key if number == 1 else f"{self.key}#{number}"

    async def _begin(self, key: str, tool_name: str, arguments: Mapping[str, Any]) -> Any:
        return await self.ledger.begin(self.run_id, key, tool_name, _json(arguments))


def _json(value: Mapping[str, Any]) -> str:
    # Written in ASCII: half characters, which no database takes, come back as they were.
    return json.dumps(value, default=str)
