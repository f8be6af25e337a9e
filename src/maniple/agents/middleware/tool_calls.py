"""Run each tool call once: recorded before and after, and approved first where that is asked for."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from langgraph.types import interrupt

from maniple.agents.middleware.base import ToolHandler
from maniple.agents.middleware.call_order import wait_for_turn
from maniple.agents.middleware.call_records import AUTHOR_KEY, Answer, CallRecords, decode_answer
from maniple.agents.middleware.tool_errors import check_arguments, describe_argument_errors, describe_failure
from maniple.agents.run_scope import run_scope
from maniple.errors import ToolFailure
from maniple.tools.registry import redact_arguments

Arguments = Mapping[str, Any]
Run = Callable[[Arguments], Awaitable[Answer]]
Turn = Callable[[bool], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class CompletedCall:
    """What a call gave, and the arguments that it really ran with: those on record, or the user's."""

    answer: Answer
    arguments: Arguments


async def _at_once(is_approved: bool) -> None:
    """Let a call begin without waiting for others."""


async def call_once(
    tool: BaseTool, tool_call_id: str, arguments: Arguments, run: Run, turn: Turn = _at_once
) -> CompletedCall:
    """Call `tool` by `run` unless the ledger of the run has its result.

    What the tool's `metadata` may say: `idempotent`, it may run again when nobody knows whether it did its
    work, else the user is asked; `approval`, each call waits for the user's word; `max_calls_per_run` and
    `beyond`, the words that further calls get.
    `turn`, told whether the user has approved the call, returns when it may begin: a call that waits is not
    yet noted as begun.
    Interrupts the graph where the user has to decide. A `ToolFailure` is a message with `status="error"`;
    everything else that `run` raises passes, and the call's result stays unknown.
    """
    scope = run_scope()
    call = _Call(tool, tool_call_id, run)
    ledger = scope.ledger
    records = CallRecords(ledger, scope.run_id, tool.name, tool_call_id) if ledger is not None else None
    if records is not None and (words := await call.beyond(records)):
        await records.begin(1, redact_arguments(tool, arguments))
        return await call.instead(records, 1, words, arguments)
    needs_approval = bool(tool.name in scope.approval or call.says("approval"))
    if needs_approval:
        await call.affordable(records, 1)
        allowed = await call.approved(records, arguments)
        if isinstance(allowed, ToolMessage):
            return CompletedCall(allowed, arguments)
        arguments = allowed
    await turn(needs_approval)
    return await call.finished(arguments) if records is None else await call.recorded(records, arguments)


@dataclass(frozen=True, slots=True)
class _Call:
    tool: BaseTool
    id: str
    run: Run

    def says(self, key: str) -> Any:
        """Return what the tool's metadata say."""
        return (self.tool.metadata or {}).get(key)

    def message(self, words: str, *, error: bool = False, ours: bool = True) -> ToolMessage:
        message = ToolMessage(words, tool_call_id=self.id, name=self.tool.name)
        message.status = "error" if error else "success"
        if ours:
            message.additional_kwargs[AUTHOR_KEY] = "maniple"
        return message

    def _question(self, reason: str, arguments: Arguments, **more: Any) -> dict[str, Any]:
        return {
            "kind": "tool_approval",
            "reason": reason,
            "tool_name": self.tool.name,
            "tool_input": dict(arguments),
            "tool_call_id": self.id,
            **more,
        }

    async def beyond(self, records: CallRecords) -> str:
        """Return the words for a call over the tool's limit in a run; "" within it."""
        limit = self.says("max_calls_per_run")
        if limit is None:
            return ""
        earlier = await records.earlier()
        if earlier is None or earlier < limit:
            return ""
        return str(self.says("beyond") or f"{self.tool.name} cannot be called again in this run.")

    async def affordable(self, records: CallRecords | None, number: int) -> None:
        """Raise `BudgetExhausted` for a try that the run can no longer afford, before it leaves any record.

        One that is on record already is no new expense: its result may be there.
        """
        meter = run_scope().meter
        if meter is None or meter.allows(tool_calls=1):
            return
        if records is None or not await records.knows(number):
            meter.check(tool_calls=1)

    async def approved(self, records: CallRecords | None, arguments: Arguments) -> Arguments | ToolMessage:
        """Ask until the user has approved arguments that the tool takes, or rejected the call."""
        if wrong := check_arguments(self.tool, arguments):
            words = describe_argument_errors(self.tool, wrong, redact_arguments(self.tool, arguments))
            return self.message(f"{self.tool.name} was not run.\n{words}", error=True, ours=False)
        question = self._question("approval", arguments)
        while True:
            answer, shown = await records.ask(question) if records else (interrupt(question), question)
            match parse_verdict(answer):
                case CallRejection(words):
                    reason = (
                        f"The user rejected this call: {words}" if words else "The user rejected this call."
                    )
                    return self.message(reason, error=True)
                case CallEdit(edited):
                    wrong = check_arguments(self.tool, edited)
                    if not wrong:
                        return edited
                    question = self._question("approval", edited, error=wrong)
                case _ if "error" in shown:
                    pass  # what was shown last cannot run: the user has to say what may
                case _:
                    return shown["tool_input"]

    async def recorded(self, records: CallRecords, arguments: Arguments) -> CompletedCall:
        """Return the result on record, or run it with its intent and its result recorded."""
        number = 1
        while True:
            await self.affordable(records, number)
            this = await records.begin(number, redact_arguments(self.tool, arguments))
            if not this.is_new:
                await records.align()
            if this.is_unknown and not self.says("idempotent"):
                answer, shown = await records.ask(self._question("unknown_result", this.arguments))
                arguments = shown["tool_input"]
                if not is_rerun_request(answer):
                    return await self.instead(records, number, parse_substitute(answer), arguments)
            elif this.is_new or this.is_unknown:
                return await self._run(records, number, arguments)
            elif this.result is not None and not this.is_paused:
                return CompletedCall(decode_answer(this.result, self.tool.name, self.id), this.arguments)
            number += 1

    async def _run(self, records: CallRecords, number: int, arguments: Arguments) -> CompletedCall:
        try:
            done = await self.finished(arguments)
        except GraphBubbleUp:
            await records.pause(number)
            raise
        await records.end(number, done.answer)
        return done

    async def finished(self, arguments: Arguments) -> CompletedCall:
        """Run the tool; its failure is a message."""
        try:
            return CompletedCall(await self.run(arguments), arguments)
        except ToolFailure as failure:
            words = describe_failure(self.tool.name, failure)
            return CompletedCall(self.message(words, error=True, ours=False), arguments)

    async def instead(
        self, records: CallRecords, number: int, words: str, arguments: Arguments
    ) -> CompletedCall:
        """Record `words` as the result of a try that is not made, or of which nothing else is known."""
        message = self.message(words)
        await records.end(number, message)
        return CompletedCall(message, arguments)


class RecordedToolCalls(AgentMiddleware[Any, Any]):
    """Every tool call of an agent goes through `call_once`; outside of what turns failures into messages."""

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> Any:
        """Return the call's `Answer`: LangChain's type leaves out the lists, which LangGraph takes."""
        call = request.tool_call
        if request.tool is None:
            return await handler(request)  # no such tool: the handler says so

        async def run(arguments: Arguments) -> Answer:
            return await handler(request.override(tool_call={**call, "args": dict(arguments)}))

        turn = partial(wait_for_turn, request)
        return (await call_once(request.tool, call["id"] or "", call["args"], run, turn)).answer


ACCEPTANCE = frozenset(
    {
        "accept",
        "accepted",
        "[accepted]",
        "approve",
        "approved",
        "yes",
        "y",
        "ok",
        "okay",
        "go",
        "接受",
        "同意",
        "好",
        "好的",
        "可以",
    }
)
APPROVAL = frozenset({"accept", "accepted", "approve", "approved"})
"""What lets a tool run. A message may be taken for the answer, and its "yes" be meant for something else."""
REPETITION = frozenset(
    {"run again", "run it again", "again", "rerun", "re-run", "retry", "再运行", "重新运行"}
)
SKIPPED = "The user chose to skip this call. Whether it had any effect is unknown."


@dataclass(frozen=True, slots=True)
class CallApproval:
    """Run it as it was shown."""


@dataclass(frozen=True, slots=True)
class CallEdit:
    """Run it with these arguments instead."""

    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallRejection:
    """Do not run it; `words` may be empty."""

    words: str


def is_acceptance(answer: object) -> bool:
    """Say whether `answer` is a word of acceptance, or `{"type": "approve"}` or `{"type": "accept"}`."""
    return _word(answer) in ACCEPTANCE


def parse_verdict(answer: object) -> CallApproval | CallEdit | CallRejection:
    """Read the answer to a call that waits for approval; what is not the very word rejects it."""
    if _word(answer) in APPROVAL:
        return CallApproval()
    if isinstance(answer, Mapping):
        arguments = answer.get("args")
        if answer.get("type") == "edit" and isinstance(arguments, Mapping):
            return CallEdit(arguments)
        return CallRejection(str(answer.get("message") or "").strip())
    return CallRejection(str(answer).strip())


def is_rerun_request(answer: object) -> bool:
    """Say whether a call whose result is unknown is to be run again."""
    return _word(answer) in REPETITION


def parse_substitute(answer: object) -> str:
    """Return the words that take the place of an unknown result."""
    if isinstance(answer, Mapping):
        answer = answer.get("message") or answer.get("type") or ""
    words = str(answer).strip()
    return SKIPPED if words.casefold() in ("", "skip", "跳过") else words


def _word(answer: object) -> str:
    if isinstance(answer, Mapping):
        answer = str(answer.get("type") or "").replace("_", " ")
    return answer.replace("_", " ").strip().casefold() if isinstance(answer, str) else ""
