"""The ledger's records of tool calls: results as JSON, attempts, and questions to the user.

Results are stored as plain JSON rather than with LangGraph's serializer, so that secrets in them can be
masked.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import BaseMessage, ToolMessage, message_to_dict, messages_from_dict
from langgraph.errors import GraphInterrupt
from langgraph.types import Command, Send, interrupt

from maniple.agents.middleware.base import ToolAnswer
from maniple.scope.run_scope import task_key
from maniple.store.protocols import ToolCallLedger
from maniple.tools.questions import EDIT_KEY, ask_user
from maniple.types import is_dict, is_list, is_mapping

Answer = ToolAnswer | list[ToolAnswer]
"""The result types that LangGraph accepts from a tool."""

AUTHOR_KEY = "said_by"
"""Marks a tool message, or a tool's metadata:

The text comes from the user or from maniple, so it is trusted.
"""

REJECTED_KEY = "rejected_by_user"
"""Marks the tool message of a call that the user rejected; holds the user's words, "" without any."""

_WITH = " with: "
_EDITED = "The user changed this call before it ran. What ran is {name}" + _WITH + "{arguments}"
_MARKS = (AUTHOR_KEY, EDIT_KEY, REJECTED_KEY)
_NO_WORDS = "{name} did its work before this program was restarted. What it changed in the state is lost."


def encode_answer(answer: Answer, name: str, tool_call_id: str) -> dict[str, Any]:
    """Return `answer` as JSON data for the ledger.

    Commands that JSON cannot represent, for example with the tool's own objects, are stored as their message
    to the model alone. The tool is not run again, and its update of the state is lost if the process ends.
    """
    message = find_message(answer, name, tool_call_id)
    record: dict[str, Any] = {"status": message.status, "content": message.content}
    record |= {key: message.additional_kwargs[key] for key in _MARKS if key in message.additional_kwargs}
    if isinstance(answer, ToolMessage):
        return record
    try:
        encoded = _encode(answer)
        is_lossless = _decode(json.loads(json.dumps(encoded))) == answer
    except (TypeError, ValueError):
        return record
    return {**record, "commands": encoded} if is_lossless else record


def decode_answer(record: Mapping[str, Any], name: str, tool_call_id: str) -> Answer:
    """Return the answer that `encode_answer` stored as `record`."""
    if "commands" in record:
        return _decode(record["commands"])
    return _message_of(record, name, tool_call_id)


def read_message(result: str | None, name: str, tool_call_id: str) -> ToolMessage | None:
    """Return the message to the model in the result of a ledger's row.

    None if there is none: the call has not ended, or waits for the user.
    """
    record = json.loads(result or "null")
    return _message_of(record, name, tool_call_id) if record and "content" in record else None


def _message_of(record: Mapping[str, Any], name: str, tool_call_id: str) -> ToolMessage:
    message = ToolMessage(record["content"], tool_call_id=tool_call_id, name=name, status=record["status"])
    message.additional_kwargs |= {key: record[key] for key in _MARKS if key in record}
    return message


def mark_edited(answer: Answer, name: str, tool_call_id: str, arguments: Mapping[str, Any]) -> Answer:
    """Return `answer` with the mark that the call ran with `arguments`, which the user wrote."""
    text = _EDITED.format(name=name, arguments=json.dumps(arguments, ensure_ascii=False, default=str))
    find_message(answer, name, tool_call_id).additional_kwargs[EDIT_KEY] = text
    return answer


def edited_arguments(message: ToolMessage) -> dict[str, Any] | None:
    """Return the arguments that the user wrote for a call that `mark_edited` marked; None for others."""
    text = str(message.additional_kwargs.get(EDIT_KEY, ""))
    if not text.startswith(_EDITED.partition("{")[0]):
        return None  # what the user says beside the result
    try:
        arguments: Any = json.loads(text.partition(_WITH)[2])
    except ValueError:
        return None
    return arguments if is_dict(arguments) else None


def find_message(answer: Answer, name: str, tool_call_id: str) -> ToolMessage:
    """Return the message to the model in an answer; if it has none, one that says so."""
    for one in answer if isinstance(answer, list) else [answer]:
        update: Any = one.update if isinstance(one, Command) else None
        messages: Any = update.get("messages") if is_mapping(update) else [one]
        for message in messages if is_list(messages) else [messages]:
            if isinstance(message, ToolMessage) and message.tool_call_id == tool_call_id:
                return message
    return ToolMessage(_NO_WORDS.format(name=name), tool_call_id=tool_call_id, name=name)


def _encode(value: Any) -> Any:
    """Return JSON data in which each object is tagged with its kind: `{KIND: …}`."""
    match value:
        case Command():
            command = cast("Command[Any]", value)
            parts = (command.graph, command.update, command.resume, command.goto)
            return {"command": [_encode(part) for part in parts]}
        case Send():
            return {"send": [value.node, _encode(value.arg)]}
        case BaseMessage():
            return {"message": message_to_dict(value)}
        case dict():
            return {
                "dict": [[_encode(key), _encode(one)] for key, one in cast("dict[Any, Any]", value).items()]
            }
        case tuple():
            return {"tuple": [_encode(one) for one in cast("tuple[Any, ...]", value)]}
        case list():
            return [_encode(one) for one in cast("list[Any]", value)]
        case str() | int() | float() | None:
            return value
        case _:
            raise TypeError(f"The ledger cannot store {type(value).__name__}")


def _decode(tree: Any) -> Any:
    if is_list(tree):
        return [_decode(one) for one in tree]
    if not is_dict(tree):
        return tree
    ((kind, value),) = tree.items()
    match kind:
        case "message":
            return messages_from_dict([value])[0]
        case "dict":
            return {_decode(key): _decode(one) for key, one in value}
        case "tuple":
            return tuple(_decode(one) for one in value)
        case "send":
            return Send(value[0], _decode(value[1]))
        case _:
            graph, update, resume, goto = (_decode(one) for one in value)
            return Command(graph=graph, update=update, resume=resume, goto=goto)


_PAUSED = "paused"
_PREMATURE = "premature"
_LIVE = "is_live"
_QUESTION = "question about "
_APPROVAL = "approval"
_LOST = "!lost"


@dataclass(frozen=True, slots=True)
class CallAttempt:
    """One attempt of a call, begun now or by an earlier execution of its task."""

    number: int
    arguments: dict[str, Any]
    is_new: bool
    result: Mapping[str, Any] | None
    is_started: bool = False
    """Whether its work has begun, so that it may have had an effect."""

    @property
    def is_paused(self) -> bool:
        """Whether the tool itself interrupted the run. It receives the answer when it runs again."""
        return self.result is not None and self.result["status"] == _PAUSED

    @property
    def is_unknown(self) -> bool:
        """Whether it is unknown if the tool did its work: that has begun, and there is no result."""
        return self.result is None and not self.is_new and self.is_started


@dataclass(slots=True)
class CallRecords:
    """The ledger's rows of one call: one for each attempt and one for each question to the user.

    Their names are `KEY`, `KEY#2`, … and `KEY?approval1`, …. `KEY` combines the graph's task with the model's
    `tool_call_id`, because endpoints repeat such ids within a run.
    """

    ledger: ToolCallLedger
    run_id: str
    tool_name: str
    tool_call_id: str
    _asked: Counter[str] = field(default_factory=Counter[str])
    _is_aligned: bool = False

    @property
    def key(self) -> str:
        """The name of the first attempt's row."""
        return f"{task_key()}:{self.tool_call_id}"

    async def count_earlier_calls(self) -> int | None:
        """Return how many calls of this tool the run has begun; `None` if this call is one of them."""
        rows = await self.ledger.list_by_run(self.run_id)
        first = {row.tool_call_id for row in rows if row.tool_name == self.tool_name}
        first = {key for key in first if not key.rpartition("#")[2].isdigit()}
        return None if self.key in first else len(first)

    async def has_attempt(self, number: int) -> bool:
        """Return whether attempt `number` has begun."""
        key = self._try_key(number)
        return any(row.tool_call_id == key for row in await self.ledger.list_by_run(self.run_id))

    async def begin(self, number: int, arguments: Mapping[str, Any]) -> CallAttempt:
        """Record the beginning of an attempt; return its record if it has begun before."""
        row = await self._begin(self._try_key(number), self.tool_name, arguments)
        result = json.loads(row.result) if row.result is not None else None
        is_started = row.started_at is not None
        return CallAttempt(number, json.loads(row.arguments), row.attempts == 1, result, is_started)

    async def start(self, number: int) -> None:
        """Record that the work of an attempt begins."""
        await self.ledger.start(self.run_id, self._try_key(number))

    async def end(self, number: int, answer: Answer) -> None:
        """Record the result of an attempt: the tool's result, its failure, or the user's text."""
        result = encode_answer(answer, self.tool_name, self.tool_call_id)
        await self.ledger.end(self.run_id, self._try_key(number), _to_json(result))

    async def pause(self, number: int) -> None:
        """Record that the tool interrupted the run, so that it runs again without asking the user."""
        await self.ledger.end(self.run_id, self._try_key(number), _to_json({"status": _PAUSED}))

    async def ask(self, payload: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Ask the user with `payload`; return the answer and the payload that the user saw.

        LangGraph executes a task again from its start and assigns answers to interrupts by order alone. The
        row therefore stores the payload that was shown, so that an answer never applies to other arguments.
        An answer that arrives before its question was shown belongs to another question and is ignored.
        """
        await self.consume_recorded_answers()
        reason = payload["reason"]
        while True:
            self._asked[reason] += 1
            key = f"{self.key}?{reason}{self._asked[reason]}"
            row = await self._begin(key, f"{_QUESTION}{self.tool_name}", payload)
            shown = json.loads(row.arguments)
            if row.result is not None:
                known = json.loads(row.result)
            else:
                answer = await ask_user(shown, key)
                is_premature = row.attempts == 1 and not answer.is_live
                known: dict[str, Any] = {_PREMATURE if is_premature else "answer": answer.value}
                known |= {_LIVE: True} if answer.is_live else {}
                await self.ledger.end(self.run_id, key, _to_json(known))
            if "answer" in known:
                return known["answer"], shown

    async def list_approvals(self) -> list[tuple[Any, dict[str, Any]]]:
        """Return the answers to the run's questions whether calls of this tool may run, with what was shown.

        There are none for a call that was itself asked about: it takes its own answer, also when its task is
        executed again, so that the order of LangGraph's answers stays.
        """
        rows = await self.ledger.list_by_run(self.run_id)
        if any(row.tool_call_id.startswith(f"{self.key}?{_APPROVAL}") for row in rows):
            return []
        approvals: list[tuple[Any, dict[str, Any]]] = []
        for row in rows:
            if row.result is None or row.tool_name != f"{_QUESTION}{self.tool_name}":
                continue
            known, shown = json.loads(row.result), json.loads(row.arguments)
            if "answer" in known and shown.get("reason") == _APPROVAL:
                approvals.append((known["answer"], shown))
        return approvals

    async def consume_recorded_answers(self) -> None:
        """Take every recorded answer from LangGraph, so that its next answer belongs to the next question.

        Answers that were given while the run worked are not among those of LangGraph. A crash loses
        LangGraph's answers of the last execution. Such questions are marked as lost, because their position
        in the order then belongs to another question.
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
            if row.result is not None and mark not in lost and not json.loads(row.result).get(_LIVE):
                try:
                    interrupt(json.loads(row.arguments))
                except GraphInterrupt:
                    await self._begin(mark, row.tool_name, {})

    def _try_key(self, number: int) -> str:
        return self.key if number == 1 else f"{self.key}#{number}"

    async def _begin(self, key: str, tool_name: str, arguments: Mapping[str, Any]) -> Any:
        return await self.ledger.begin(self.run_id, key, tool_name, _to_json(arguments))


def _to_json(value: Mapping[str, Any]) -> str:
    # ASCII, because databases reject lone surrogates; escaped, they are read back unchanged.
    return json.dumps(value, default=str)
