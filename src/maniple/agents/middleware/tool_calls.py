"""Runs each tool call once: records it before and after, and asks the user for approval where required."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp

from maniple.agents.middleware.base import ToolHandler
from maniple.agents.middleware.call_order import preceding_calls, wait_for_turn
from maniple.agents.middleware.call_records import (
    AUTHOR_KEY,
    REJECTED_KEY,
    Answer,
    CallRecords,
    decode_answer,
    mark_edited,
)
from maniple.agents.middleware.tool_errors import check_arguments, describe_argument_errors, describe_failure
from maniple.errors import ToolFailure
from maniple.scope.effects import recording_effect
from maniple.scope.run_scope import run_scope
from maniple.tools.decisions import (
    APPROVAL_ANSWERS,
    UNKNOWN_RESULT_ANSWERS,
    CallApproval,
    CallEdit,
    CallRejection,
    CallRerun,
    CallResult,
    CallSkip,
    UnclearDecision,
    parse_approval,
    parse_unknown_result,
)
from maniple.tools.questions import POSITION_KEY, ask_user
from maniple.tools.registry import FILE_WRITER, redact_arguments
from maniple.types import UnknownResultPolicy, is_dict, is_mapping

Arguments = Mapping[str, Any]
Run = Callable[[Arguments], Awaitable[Answer]]
Turn = Callable[[], Awaitable[None]]
REJECTED = "The user rejected this call"
_SKIPPED = "The user chose to skip this call. Whether it had any effect is unknown."
_NOT_REPEATED = "The program stopped while this ran, and it was not run again. Its effect is unknown."
_NOT_APPROVABLE = "{name} was not run: it needs the user's approval, and nobody can be asked in this run."


@dataclass(frozen=True, slots=True)
class CompletedCall:
    """The result of a call, and the arguments that it ran with: recorded ones, or the user's."""

    answer: Answer
    arguments: Arguments


async def _begin_immediately() -> None:
    """Let a call begin without waiting for others."""


async def call_once(
    tool: BaseTool,
    tool_call_id: str,
    arguments: Arguments,
    run: Run,
    turn: Turn = _begin_immediately,
    position: int = 0,
) -> CompletedCall:
    """Call `tool` with `run`, unless the run's ledger has the result.

    Keys of the tool's `metadata`: a call with unknown result runs again with `idempotent` or `only_reads`;
    otherwise the user is asked. `runs.on_unknown` of the settings comes before both. The result of a call is
    unknown if its work has begun; with `marks_effect` the tool says when (`begin_effect`). With `approval`,
    each call waits for the user's approval. `includes` names the tools whose work its operations do, by
    `action`; if their calls need approval, so does it. With `writes_files`, a call needs approval where one
    of `write_file` does; a mapping names the values of an argument with which a call only reads. After
    `max_calls_per_run` calls, further calls return the text in `beyond`.

    `turn()` returns when the call may begin. A waiting call is not recorded as begun. `position`
    is the call's among those of its answer, from 0. Interrupts the graph where the user has to decide. A
    `ToolFailure` becomes a message with `status="error"`. All other exceptions of `run` pass, and the result
    of the call stays unknown.
    """
    scope = run_scope()
    call = _Call(tool, tool_call_id, run, position)
    ledger = scope.ledger
    records = CallRecords(ledger, scope.run_id, tool.name, tool_call_id) if ledger is not None else None
    if records is not None and (refusal := await call.describe_exceeded_limit(records)):
        await records.begin(1, redact_arguments(tool, arguments))
        return await call.record_substitute(records, 1, refusal, arguments)
    needs_approval = bool(call.names(arguments) & scope.approval or call.metadata_value("approval"))
    if needs_approval and not scope.can_pause:
        return CompletedCall(call.message(_NOT_APPROVABLE.format(name=tool.name), error=True), arguments)
    if needs_approval:
        await call.check_budget(records, 1)
        allowed = await call.request_approval(records, arguments)
        if isinstance(allowed, ToolMessage):
            return CompletedCall(allowed, arguments)
        if allowed != arguments:
            call = replace(call, is_edited=True)
        arguments = allowed
    await turn()
    return await call.run_tool(arguments) if records is None else await call.run_recorded(records, arguments)


@dataclass(frozen=True, slots=True)
class _Call:
    tool: BaseTool
    id: str
    run: Run
    position: int = 0
    is_edited: bool = False
    """Whether the user has changed the arguments that the model wrote."""

    def metadata_value(self, key: str) -> Any:
        """Return a value of the tool's metadata."""
        return (self.tool.metadata or {}).get(key)

    def names(self, arguments: Arguments) -> set[str]:
        """Return the tool's name, and those of the tools whose work the call includes."""
        names = {self.tool.name}
        if self._writes_files(arguments):
            names.add(FILE_WRITER)
        if includes := cast("Mapping[str, str | tuple[str, ...]]", self.metadata_value("includes") or {}):
            lists = [cast("list[object]", value) for value in arguments.values() if isinstance(value, list)]
            operations = [one for listed in lists for one in listed if is_dict(one)]
            for included in (includes[one["action"]] for one in operations if one.get("action") in includes):
                names |= {included} if isinstance(included, str) else {*included}
        return names

    def _writes_files(self, arguments: Arguments) -> bool:
        writes = self.metadata_value("writes_files")
        if not is_mapping(writes):
            return bool(writes)
        return not all(arguments.get(name) in reading for name, reading in writes.items())

    def message(self, text: str, *, error: bool = False, is_trusted: bool = True) -> ToolMessage:
        message = ToolMessage(text, tool_call_id=self.id, name=self.tool.name)
        message.status = "error" if error else "success"
        if is_trusted:
            message.additional_kwargs[AUTHOR_KEY] = "maniple"
        return message

    def _question(self, reason: str, arguments: Arguments, **more: Any) -> dict[str, Any]:
        return {
            "kind": "tool_approval",
            "reason": reason,
            "tool_name": self.tool.name,
            "tool_input": dict(arguments),
            "tool_call_id": self.id,
            **({POSITION_KEY: self.position} if self.position else {}),
            "answers": dict(APPROVAL_ANSWERS if reason == "approval" else UNKNOWN_RESULT_ANSWERS),
            **more,
        }

    async def describe_exceeded_limit(self, records: CallRecords) -> str:
        """Return the text for a call beyond the tool's limit in a run; "" within the limit."""
        limit = self.metadata_value("max_calls_per_run")
        if limit is None:
            return ""
        earlier = await records.count_earlier_calls()
        if earlier is None or earlier < limit:
            return ""
        return str(self.metadata_value("beyond") or f"{self.tool.name} cannot be called again in this run.")

    async def check_budget(self, records: CallRecords | None, number: int) -> None:
        """Raise `BudgetExhausted` if the run's budget has no tool call left; nothing is recorded.

        A recorded attempt is not counted again, because its result may be recorded, too.
        """
        meter = run_scope().meter
        if meter is None or meter.allows(tool_calls=1):
            return
        if records is None or not await records.has_attempt(number):
            meter.check(tool_calls=1)

    async def request_approval(
        self, records: CallRecords | None, arguments: Arguments
    ) -> Arguments | ToolMessage:
        """Ask the user until valid arguments are approved or the call is rejected.

        A call of a kind that the user approved for the rest of the run is not asked about. Return the
        approved arguments, or the message of a rejection.
        """
        if wrong := check_arguments(self.tool, arguments):
            text = describe_argument_errors(self.tool, wrong, redact_arguments(self.tool, arguments))
            return self.message(f"{self.tool.name} was not run.\n{text}", error=True, is_trusted=False)
        if records is not None and await self._is_always_approved(records, arguments):
            return arguments
        question = self._question("approval", arguments)
        while True:
            if records is not None:
                answer, shown = await records.ask(question)
            else:
                answer, shown = (await ask_user(question)).value, question
            match parse_approval(answer):
                case CallRejection(words):
                    reason = f"{REJECTED}: {words}" if words else f"{REJECTED}."
                    rejection = self.message(reason, error=True)
                    rejection.additional_kwargs[REJECTED_KEY] = words
                    return rejection
                case CallApproval() if "error" not in shown:
                    return cast("Arguments", shown["tool_input"])
                case CallEdit(edited) if not check_arguments(self.tool, edited):
                    return edited
                case unsettled:
                    question = self._ask_again(unsettled, shown)

    async def _is_always_approved(self, records: CallRecords, arguments: Arguments) -> bool:
        """Whether the user approved calls for the rest of the run that did at least what this one does."""
        names = self.names(arguments)
        return any(
            isinstance(decision := parse_approval(answer), CallApproval)
            and decision.always
            and "error" not in shown
            and names <= self.names(shown["tool_input"])
            for answer, shown in await records.list_approvals()
        )

    def _ask_again(self, answer: object, shown: dict[str, Any]) -> dict[str, Any]:
        """Return the question after an answer that does not settle it.

        The arguments that were shown remain, and so does their error: then the user has to edit them.
        """
        match answer:
            case CallEdit(edited):
                return self._question("approval", edited, error=check_arguments(self.tool, edited))
            case UnclearDecision(explanation):
                return {**shown, "unclear": explanation}
            case _:
                return shown

    async def run_recorded(self, records: CallRecords, arguments: Arguments) -> CompletedCall:
        """Return the recorded result, or run the tool and record its beginning and its result."""
        number = 1
        while True:
            await self.check_budget(records, number)
            this = await records.begin(number, redact_arguments(self.tool, arguments))
            if not this.is_new:
                await records.consume_recorded_answers()
            if this.is_unknown and self._on_unknown == "fail":
                return await self.record_substitute(records, number, _NOT_REPEATED, arguments, error=True)
            if this.is_unknown and self._on_unknown == "ask":
                substitute, arguments = await self._ask_about_result(records, this.arguments)
                if substitute:
                    return await self.record_substitute(records, number, substitute, arguments)
            elif this.result is None:
                return await self._run(records, number, arguments)
            elif not this.is_paused:
                return CompletedCall(decode_answer(this.result, self.tool.name, self.id), this.arguments)
            number += 1

    @property
    def _on_unknown(self) -> UnknownResultPolicy:
        """What is done about a call whose result is unknown."""
        may_rerun = self.metadata_value("idempotent") or self.metadata_value("only_reads")
        return run_scope().on_unknown.get(self.tool.name, "rerun" if may_rerun else "ask")

    async def _ask_about_result(self, records: CallRecords, arguments: Arguments) -> tuple[str, Arguments]:
        """Return the text that replaces an unknown result, and the call's arguments; "" runs it again."""
        question = self._question("unknown_result", arguments)
        while True:
            answer, shown = await records.ask(question)
            match parse_unknown_result(answer):
                case CallRerun():
                    return "", shown["tool_input"]
                case CallSkip():
                    return _SKIPPED, shown["tool_input"]
                case CallResult(text):
                    return text, shown["tool_input"]
                case UnclearDecision(explanation):
                    question = {**shown, "unclear": explanation}

    async def _run(self, records: CallRecords, number: int, arguments: Arguments) -> CompletedCall:
        start = partial(records.start, number)
        if self._on_unknown != "rerun" and not self.metadata_value("marks_effect"):
            await start()
        try:
            with recording_effect(start):
                done = await self.run_tool(arguments)
        except GraphBubbleUp:
            await records.pause(number)
            raise
        await records.end(number, done.answer)
        return done

    async def run_tool(self, arguments: Arguments) -> CompletedCall:
        """Run the tool; a `ToolFailure` becomes a message."""
        try:
            answer = await self.run(arguments)
        except ToolFailure as failure:
            text = describe_failure(self.tool.name, failure)
            answer = self.message(text, error=True, is_trusted=False)
        if self.is_edited and not self.metadata_value("is_terminal"):
            answer = mark_edited(answer, self.tool.name, self.id, redact_arguments(self.tool, arguments))
        return CompletedCall(answer, arguments)

    async def record_substitute(
        self, records: CallRecords, number: int, text: str, arguments: Arguments, *, error: bool = False
    ) -> CompletedCall:
        """Record `text` as the result of an attempt that is not made or whose result is unknown."""
        message = self.message(text, error=error)
        await records.end(number, message)
        return CompletedCall(message, arguments)


class RecordedToolCalls(AgentMiddleware[Any, Any]):
    """Passes every tool call of an agent to `call_once`; must be outside of `ToolErrorMiddleware`."""

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> Any:
        """Return the call's `Answer`, which may be a list:

        LangGraph accepts lists, LangChain's type omits them.
        """
        call = request.tool_call
        if request.tool is None:
            return await handler(request)  # an unknown tool: the handler reports it

        async def run(arguments: Arguments) -> Answer:
            return await handler(request.override(tool_call={**call, "args": dict(arguments)}))

        turn, position = partial(wait_for_turn, request), len(preceding_calls(request))
        return (await call_once(request.tool, call["id"] or "", call["args"], run, turn, position)).answer
