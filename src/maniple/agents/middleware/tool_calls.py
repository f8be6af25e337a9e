"""Runs each tool call once: records it before and after, and asks the user for approval where required."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp

from maniple.agents.middleware.base import ToolHandler
from maniple.agents.middleware.call_order import wait_for_turn
from maniple.agents.middleware.call_records import AUTHOR_KEY, Answer, CallRecords, decode_answer
from maniple.agents.middleware.tool_errors import check_arguments, describe_argument_errors, describe_failure
from maniple.agents.run_scope import run_scope
from maniple.errors import ToolFailure
from maniple.tools.questions import ask_user
from maniple.tools.registry import redact_arguments
from maniple.types import is_dict, is_mapping

Arguments = Mapping[str, Any]
Run = Callable[[Arguments], Awaitable[Answer]]
Turn = Callable[[bool], Awaitable[None]]
_NOT_APPROVABLE = "{name} was not run: it needs the user's approval, and nobody can be asked in this run."


@dataclass(frozen=True, slots=True)
class CompletedCall:
    """The result of a call, and the arguments that it ran with: recorded ones, or the user's."""

    answer: Answer
    arguments: Arguments


async def _begin_immediately(is_approved: bool) -> None:
    """Let a call begin without waiting for others."""


async def call_once(
    tool: BaseTool, tool_call_id: str, arguments: Arguments, run: Run, turn: Turn = _begin_immediately
) -> CompletedCall:
    """Call `tool` with `run`, unless the run's ledger has the result.

    Keys of the tool's `metadata`: with `idempotent`, a call with unknown result runs again; otherwise the
    user is asked. With `approval`, each call waits for the user's approval. `includes` names the tools whose
    work its operations do, by `action`; if their calls need approval, so does it. After `max_calls_per_run`
    calls, further calls return the text in `beyond`. `turn(is_approved)` returns when the call may begin. A
    waiting call is not recorded as begun. Interrupts the graph where the user has to decide. A `ToolFailure`
    becomes a message with `status="error"`. All other exceptions of `run` pass, and the result of the call
    stays unknown.
    """
    scope = run_scope()
    call = _Call(tool, tool_call_id, run)
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
        arguments = allowed
    await turn(needs_approval)
    return await call.run_tool(arguments) if records is None else await call.run_recorded(records, arguments)


@dataclass(frozen=True, slots=True)
class _Call:
    tool: BaseTool
    id: str
    run: Run

    def metadata_value(self, key: str) -> Any:
        """Return a value of the tool's metadata."""
        return (self.tool.metadata or {}).get(key)

    def names(self, arguments: Arguments) -> set[str]:
        """Return the tool's name, and those of the tools whose work the call includes."""
        names = {self.tool.name}
        if includes := cast("Mapping[str, str]", self.metadata_value("includes") or {}):
            lists = [cast("list[object]", value) for value in arguments.values() if isinstance(value, list)]
            operations = [one for listed in lists for one in listed if is_dict(one)]
            names |= {includes[one["action"]] for one in operations if one.get("action") in includes}
        return names

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

        Return the approved arguments, or the message of a rejection.
        """
        if wrong := check_arguments(self.tool, arguments):
            text = describe_argument_errors(self.tool, wrong, redact_arguments(self.tool, arguments))
            return self.message(f"{self.tool.name} was not run.\n{text}", error=True, is_trusted=False)
        question = self._question("approval", arguments)
        while True:
            if records is not None:
                answer, shown = await records.ask(question)
            else:
                answer, shown = (await ask_user(question)).value, question
            match parse_verdict(answer):
                case CallRejection(words):
                    reason = f"{REJECTED}: {words}" if words else f"{REJECTED}."
                    return self.message(reason, error=True)
                case CallEdit(edited):
                    wrong = check_arguments(self.tool, edited)
                    if not wrong:
                        return edited
                    question = self._question("approval", edited, error=wrong)
                case _ if "error" in shown:
                    pass  # the arguments that were shown are invalid, so the user has to edit them
                case _:
                    return shown["tool_input"]

    async def run_recorded(self, records: CallRecords, arguments: Arguments) -> CompletedCall:
        """Return the recorded result, or run the tool and record its beginning and its result."""
        number = 1
        while True:
            await self.check_budget(records, number)
            this = await records.begin(number, redact_arguments(self.tool, arguments))
            if not this.is_new:
                await records.consume_recorded_answers()
            if this.is_unknown and not self.metadata_value("idempotent"):
                answer, shown = await records.ask(self._question("unknown_result", this.arguments))
                arguments = shown["tool_input"]
                if not is_rerun_request(answer):
                    return await self.record_substitute(records, number, parse_substitute(answer), arguments)
            elif this.is_new or this.is_unknown:
                return await self._run(records, number, arguments)
            elif this.result is not None and not this.is_paused:
                return CompletedCall(decode_answer(this.result, self.tool.name, self.id), this.arguments)
            number += 1

    async def _run(self, records: CallRecords, number: int, arguments: Arguments) -> CompletedCall:
        try:
            done = await self.run_tool(arguments)
        except GraphBubbleUp:
            await records.pause(number)
            raise
        await records.end(number, done.answer)
        return done

    async def run_tool(self, arguments: Arguments) -> CompletedCall:
        """Run the tool; a `ToolFailure` becomes a message."""
        try:
            return CompletedCall(await self.run(arguments), arguments)
        except ToolFailure as failure:
            text = describe_failure(self.tool.name, failure)
            return CompletedCall(self.message(text, error=True, is_trusted=False), arguments)

    async def record_substitute(
        self, records: CallRecords, number: int, text: str, arguments: Arguments
    ) -> CompletedCall:
        """Record `text` as the result of an attempt that is not made or whose result is unknown."""
        message = self.message(text)
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
"""The answers that approve a tool call.

Fewer than `ACCEPTANCE`, because "yes" in a message may mean something else.
"""
REPETITION = frozenset(
    {"run again", "run it again", "again", "rerun", "re-run", "retry", "再运行", "重新运行"}
)
REJECTED = "The user rejected this call"
SKIPPED = "The user chose to skip this call. Whether it had any effect is unknown."


@dataclass(frozen=True, slots=True)
class CallApproval:
    """The user lets the call run as shown."""


@dataclass(frozen=True, slots=True)
class CallEdit:
    """The user lets the call run with these arguments instead."""

    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallRejection:
    """The user rejects the call; `reason` may be empty."""

    reason: str


def is_acceptance(answer: object) -> bool:
    """Return whether `answer` is a word of acceptance, or `{"type": "approve"}` or `{"type": "accept"}`."""
    return _normalize_answer(answer) in ACCEPTANCE


_PLAN_ACCEPTANCE = sorted(
    (
        *(re.escape(one) for one in ACCEPTANCE),
        *(
            "looks? (?:good|great|fine)",
            "all good",
            "(?:that |this )?works(?: for me)?",
            "lgtm",
            "sounds good",
        ),
        *("(?:very )?good", "great", "perfect", "fine", "sure", "yep", "yeah", "agreed", "go for it"),
        *("(?:please )?(?:go ahead|proceed|start|begin|continue|do it|go on)", "i (?:accept|approve|agree)"),
        *("(?:(?:das |es )?passt|sieht gut aus|ja|gut)(?: so)?", "in ordnung", "einverstanden", "genehmigt"),
        *("leg los", "los", "mach(?: das| es)?(?: so)?", "so machen", "weiter", "gerne", "klar", "perfekt"),
        *("oui", "d['’]accord", "(?:c['’]est )?(?:bon|parfait|bien)", "ça marche", "ça me va", "vas-y"),
        *("allez-y", "continue[rz]?", "j['’](?:accepte|approuve)", "entendu"),
        *("sí", "si", "vale", "de acuerdo", "está bien", "me parece bien", "(?:se ve )?bien", "perfecto"),
        *("adelante", "aprobado", "acepto", "apruebo", "procede", "continúa"),
        *(
            "没问题",
            "没有问题",
            "行",
            "开始吧?",
            "继续吧?",
            "就这样吧?",
            "批准",
            "通过",
            "看起来不错",
            "不错",
            "很好",
        ),
    ),
    key=len,
    reverse=True,
)
_POLITE = "please|thanks?(?: you)?|bitte|danke|merci|s['’]il (?:te|vous) pla[iî]t|gracias|por favor|谢谢|请"
_PLAN_ACCEPTED = re.compile(
    rf"(?:(?:{_POLITE})[\s,;]+)?(?:{'|'.join(_PLAN_ACCEPTANCE)})"
    rf"(?:[\s,;.!…–—，。！、；-]+(?:{'|'.join((*_PLAN_ACCEPTANCE, _POLITE))}))*[\s.!…。！]*"
)
_ACCEPTANCE_CHARACTERS = 60


def is_plan_acceptance(answer: object) -> bool:
    """Return whether `answer` accepts a plan: as `is_acceptance`, or in a few words and nothing else.

    A longer text, a question and a text with any further word may ask for something else: they do not.
    """
    text = _normalize_answer(answer)
    if is_acceptance(answer):
        return True
    is_short = isinstance(answer, str) and len(text) <= _ACCEPTANCE_CHARACTERS
    return is_short and _PLAN_ACCEPTED.fullmatch(text) is not None


def parse_verdict(answer: object) -> CallApproval | CallEdit | CallRejection:
    """Parse the answer to an approval question; anything but an approval or an edit rejects the call."""
    if _normalize_answer(answer) in APPROVAL:
        return CallApproval()
    if is_mapping(answer):
        arguments = answer.get("args")
        if answer.get("type") == "edit" and is_mapping(arguments):
            return CallEdit(arguments)
        return CallRejection(str(answer.get("message") or "").strip())
    return CallRejection(str(answer).strip())


def is_rerun_request(answer: object) -> bool:
    """Return whether a call whose result is unknown is to be run again."""
    return _normalize_answer(answer) in REPETITION


def parse_substitute(answer: object) -> str:
    """Return the text that replaces an unknown result."""
    if is_mapping(answer):
        answer = answer.get("message") or answer.get("type") or ""
    text = str(answer).strip()
    return SKIPPED if text.casefold() in ("", "skip", "跳过") else text


def _normalize_answer(answer: object) -> str:
    if is_mapping(answer):
        answer = str(answer.get("type") or "").replace("_", " ")
    return answer.replace("_", " ").strip().casefold() if isinstance(answer, str) else ""
