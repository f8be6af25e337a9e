"""Middleware: who goes round in circles is told, and then the step ends with what was found until then."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool

from maniple.agents.middleware.base import ModelHandler
from maniple.agents.middleware.context_window import group_messages
from maniple.agents.task import StepFailed, set_in_context
from maniple.agents.tool_observations import ObservedCall

StuckKind = Literal["same", "alternating", "nothing_new", "unchanged"]

NUDGE_AT: dict[StuckKind, int] = {"same": 3, "alternating": 6, "nothing_new": 5, "unchanged": 15}
"""Answers in a row after which an agent is told."""
END_AT: dict[StuckKind, int] = {"same": 5, "alternating": 8, "nothing_new": 10, "unchanged": 22}
"""Answers in a row after which its step ends."""
PATIENCE = 3
"""So many times as long for whoever waits for something: it is expected to stay the same for a while."""
BLIND_PATIENCE = 15
"""So many times as long for who does the same and is told only that it was done: it may be `Next`."""
MOST_NUDGES = 3
"""Who gets stuck once more in one step after so many nudges is not nudged again."""
_NAMES, _NAME_CHARACTERS, _TRIED_CHARACTERS = 3, 60, 200

Things = frozenset[str]
"""What a result says, a digest for each thing."""
Signature = frozenset[tuple[str, Things]]
"""The calls of an answer with what they gave."""


@dataclass(frozen=True, slots=True)
class StuckVerdict:
    """How an agent is stuck, in words, and whether it was told in vain."""

    kind: StuckKind
    words: str
    is_final: bool = False


class StuckDetector:
    """Watches one step of one agent, from its first answer on.

    Stuck is: the same calls with the same results again and again; two answers in turn; calls that bring
    nothing which an earlier one did not bring; and after a longer while, other calls that are all told the
    same few words. The same call with another result is progress. So is what becomes of the addresses that
    the texts it was `told` and its results name.
    """

    def __init__(self, told: Iterable[str] = ()) -> None:
        self._leads = KnownAddresses()
        for text in told:
            self._leads.take(text)
        self._gists: set[str] = set()
        self._results: dict[str, Things] = {}
        self._known: set[str] = set()
        self._last: list[Signature] = []
        self._lasts: dict[StuckKind, int] = dict.fromkeys(NUDGE_AT, 0)
        self._waited = False
        self._nudges = 0
        self._is_nudged = False

    def see(self, calls: Sequence[ObservedCall]) -> StuckVerdict | None:
        """Take the calls of the next answer; say whether, with it, the agent is stuck."""
        found = [(one, one.call, one.found()) for one in calls]
        is_stale, is_unchanged = self._is_stale(found), self._is_unchanged(calls)
        self._lasts["nothing_new"] = self._lasts["nothing_new"] + 1 if is_stale else 0
        self._lasts["unchanged"] = self._lasts["unchanged"] + 1 if is_stale or is_unchanged else 0
        signature = frozenset((call, things) for _, call, things in found)
        before, one_before = (self._last[-1:] or [None])[0], (self._last[:-1] or [None])[0]
        self._lasts["same"] = self._lasts["same"] + 1 if signature == before else 1
        turns = signature == one_before and signature != before
        self._lasts["alternating"] = self._lasts["alternating"] + 1 if turns else min(len(self._last) + 1, 2)
        self._last = [*self._last[-1:], signature]
        waits = any(one.waits() for one in calls)
        patience: dict[StuckKind, int] = dict.fromkeys(NUDGE_AT, PATIENCE if waits or self._waited else 1)
        if calls and all(one.is_blind for one in calls):
            patience |= {"same": BLIND_PATIENCE, "nothing_new": BLIND_PATIENCE, "unchanged": BLIND_PATIENCE}
        self._waited = waits
        for one in calls:
            if not one.failed:
                self._leads.take(one.result)
        return self._verdict(calls, patience)

    def _is_stale(self, found: Sequence[tuple[ObservedCall, str, Things]]) -> bool:
        """Say whether no call of an answer brings anything new, and remember what they bring."""
        stale = bool(found)
        for one, call, things in found:
            earlier = self._results.get(call)
            is_known = things == earlier if earlier is not None else self._could_be_known(one)
            stale = stale and is_known and things <= self._known
            self._results[call] = things
        for _, _, things in found:
            self._known |= things
        return stale

    def _could_be_known(self, one: ObservedCall) -> bool:
        return one.could_be_known() and not (one.failed and self._leads.are_followed_by(one.arguments))

    def _is_unchanged(self, calls: Sequence[ObservedCall]) -> bool:
        """Say whether all calls of an answer were told what others were, and remember what they were told."""
        gists = {one.gist() for one in calls if not self._leads.are_followed_by(one.arguments)}
        unchanged = bool(gists) and "" not in gists and gists <= self._gists
        self._gists |= gists
        return unchanged

    def _verdict(
        self, calls: Sequence[ObservedCall], patience: Mapping[StuckKind, int]
    ) -> StuckVerdict | None:
        reached: list[StuckKind] = [
            kind for kind in NUDGE_AT if self._lasts[kind] >= patience[kind] * NUDGE_AT[kind]
        ]
        if not reached:
            self._is_nudged = False
            return None
        if not self._is_nudged:
            self._is_nudged = True
            self._nudges += 1
        is_final = self._nudges > MOST_NUDGES or any(
            self._lasts[kind] >= patience[kind] * END_AT[kind] for kind in reached
        )
        return StuckVerdict(reached[0], _words(reached[0], self._lasts[reached[0]], calls), is_final)


def _tried(calls: Sequence[ObservedCall]) -> str:
    """Return what the calls were given, in short."""
    return ", ".join(
        json.dumps(dict(one.arguments), ensure_ascii=False, default=str)[:_TRIED_CHARACTERS]
        for one in calls[:_NAMES]
    )


def _words(kind: StuckKind, answers: int, calls: Sequence[ObservedCall]) -> str:
    names = sorted({one.name[:_NAME_CHARACTERS] for one in calls})
    named = ", ".join(names[:_NAMES]) + (", …" if len(names) > _NAMES else "")
    match kind:
        case "same":
            return (
                f"the same call of {named} was made {answers} times in a row, always with the same result: "
                f"{_tried(calls)}"
            )
        case "alternating":
            return (
                f"two calls were made in turn, {answers} in all, the last of {named}, with the same results"
            )
        case "nothing_new":
            return f"the last {answers} calls brought nothing that was not known, the last one of {named}"
        case "unchanged":
            return f"the last {answers} calls were all told the same few words, the last one of {named}"


_MOST_CHARACTERS = 50_000
"""Of one text."""
_MOST = 10_000
_TOKEN = re.compile(r"[^\s\"'<>()\[\]{},|`]{4,500}")
_TELLING = re.compile(r"[./_@#\d]")
"""https://a.test/x, data/2024.csv, user_7, JIRA-12; no plain word."""


class KnownAddresses:
    """Those of the task and of results so far, `_MOST` at most."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def take(self, text: str) -> None:
        """Take what a text names."""
        for token in _TOKEN.findall(text[:_MOST_CHARACTERS]):
            if len(self._known) >= _MOST:
                return
            if _TELLING.search(token):
                self._known.add(token.rstrip(".;:!?"))

    def are_followed_by(self, arguments: Mapping[str, Any]) -> bool:
        """Say whether one of the arguments is among them."""
        return any(isinstance(one, str) and one.strip() in self._known for one in arguments.values())


_NUDGE = (
    "[From maniple, not from the user] You are going round in circles: {words}. Doing it once more will not "
    "change that. Try something else, such as other arguments, another tool or another source; or answer now "
    "with what you have found, and say what is missing. If this goes on, the step ends."
)


class _Watch:
    """What was seen of one step: it outlives the compaction of the conversation."""

    def __init__(self) -> None:
        self._detector: StuckDetector | None = None
        self._seen: set[str] = set()
        self._stuck: StuckVerdict | None = None

    def after(self, messages: Sequence[AnyMessage], readers: Set[str]) -> StuckVerdict | None:
        """Take in what is new of a conversation; `readers` are the tools that only read."""
        if self._detector is None:
            told = (one.text for one in messages if isinstance(one, HumanMessage))
            self._detector = StuckDetector(told)
        for answer, *results in group_messages(messages):
            if not isinstance(answer, AIMessage) or not results or answer.id in self._seen:
                continue
            self._seen.add(str(answer.id))
            given = {one.tool_call_id: one for one in results if isinstance(one, ToolMessage)}
            calls = [(call, given[call["id"]]) for call in answer.tool_calls if call["id"] in given]
            self._stuck = self._detector.see(
                [
                    ObservedCall(
                        call["name"],
                        call["args"],
                        _said(result),
                        is_error=result.status == "error",
                        only_reads=call["name"] in readers,
                    )
                    for call, result in calls
                ]
            )
        return self._stuck


_WATCH: ContextVar[_Watch | None] = ContextVar("maniple_stuck_watch", default=None)


def watch_step() -> AbstractContextManager[None]:
    """Watch what is done within as one step."""
    return set_in_context(_WATCH, _Watch())


class StuckDetection(AgentMiddleware[Any, Any]):
    """Says so to an agent that is stuck, with every prompt until it is not; raises `StepFailed` in the end.

    Nothing of it stays in the conversation. Outside of `watched` it judges by the conversation alone.
    """

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        # Those of the request may have been shortened, and then differ from what was seen of them before.
        stuck = (_WATCH.get() or _Watch()).after(request.state["messages"], _readers(request))
        if stuck is None:
            return await handler(request)
        if stuck.is_final:
            raise StepFailed(f"the agent was stuck: {stuck.words}")
        nudge = HumanMessage(_NUDGE.format(words=stuck.words))
        return await handler(request.override(messages=[*request.messages, nudge]))


def _readers(request: ModelRequest) -> frozenset[str]:
    """Return the names of tools that say of themselves, or whose servers say, that they only read."""
    tools = (tool for tool in request.tools if isinstance(tool, BaseTool))
    return frozenset(tool.name for tool in tools if (tool.metadata or {}).get("only_reads"))


def _said(result: ToolMessage) -> str:
    # Of pictures and other parts the data counts, too; of what was done in the browser, on which page.
    said = result.content if isinstance(result.content, str) else str(result.content)
    page = result.artifact.get("page") if isinstance(result.artifact, dict) else None
    return f"{said}\n[page {page}]" if page else said
