"""Middleware that detects repeated work without progress: it warns the agent, and later ends the step."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from maniple.agents.middleware.base import ModelHandler, artifact_fields, reading_tools
from maniple.agents.middleware.context_window import group_messages
from maniple.agents.step_state import enter_step_state, step_state
from maniple.agents.task import StepFailed
from maniple.agents.tool_observations import ObservedCall

StuckKind = Literal["same", "alternating", "nothing_new", "unchanged"]

NUDGE_AT: dict[StuckKind, int] = {"same": 3, "alternating": 6, "nothing_new": 5, "unchanged": 15}
"""Consecutive answers after which an agent is warned."""
END_AT: dict[StuckKind, int] = {"same": 5, "alternating": 8, "nothing_new": 10, "unchanged": 22}
"""Consecutive answers after which its step ends."""
PATIENCE = 3
"""The factor of both limits while an agent polls for something, which stays the same for a while."""
BLIND_PATIENCE = 15
"""The factor while all results are mere acknowledgements, as for repeated clicks on "Next"."""
MAX_NUDGES = 3
"""The number of warnings in one step after which the step ends instead."""
_NAMES, _NAME_CHARACTERS, _TRIED_CHARACTERS = 3, 60, 200

Digests = frozenset[str]
"""The contents of a result, as digests."""
Signature = frozenset[tuple[str, Digests]]
"""The calls of an answer with the digests of their results."""


@dataclass(frozen=True, slots=True)
class StuckVerdict:
    """How an agent is stuck, and whether the step must end."""

    kind: StuckKind
    description: str
    is_final: bool = False


class StuckDetector:
    """Observes the answers of one step of one agent.

    An agent is stuck if it repeats the same calls with the same results, alternates between two answers,
    makes calls whose results contain nothing new, or, after a longer time, makes different calls that all
    return the same short text. The same call with another result is progress. So are calls on addresses that
    occur in `texts` (the task) or in earlier results.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._addresses = KnownAddresses()
        for text in texts:
            self._addresses.add(text)
        self._gists: set[str] = set()
        self._results: dict[str, Digests] = {}
        self._known: set[str] = set()
        self._recent: list[Signature] = []
        self._streaks: dict[StuckKind, int] = dict.fromkeys(NUDGE_AT, 0)
        self._was_polling = False
        self._nudges = 0
        self._is_nudged = False

    def observe(self, calls: Sequence[ObservedCall]) -> StuckVerdict | None:
        """Record the calls of the next answer; return a verdict if the agent is stuck."""
        found = [(one, one.call, one.digest_result()) for one in calls]
        is_stale, is_unchanged = self._is_stale(found), self._is_unchanged(calls)
        self._streaks["nothing_new"] = self._streaks["nothing_new"] + 1 if is_stale else 0
        self._streaks["unchanged"] = self._streaks["unchanged"] + 1 if is_stale or is_unchanged else 0
        signature = frozenset((call, digests) for _, call, digests in found)
        before, one_before = (self._recent[-1:] or [None])[0], (self._recent[:-1] or [None])[0]
        self._streaks["same"] = self._streaks["same"] + 1 if signature == before else 1
        turns = signature == one_before and signature != before
        self._streaks["alternating"] = (
            self._streaks["alternating"] + 1 if turns else min(len(self._recent) + 1, 2)
        )
        self._recent = [*self._recent[-1:], signature]
        is_polling = any(one.is_polling() for one in calls)
        patience: dict[StuckKind, int] = dict.fromkeys(
            NUDGE_AT, PATIENCE if is_polling or self._was_polling else 1
        )
        if calls and all(one.is_blind for one in calls):
            patience |= {"same": BLIND_PATIENCE, "nothing_new": BLIND_PATIENCE, "unchanged": BLIND_PATIENCE}
        self._was_polling = is_polling
        for one in calls:
            if not one.failed:
                self._addresses.add(one.result)
        return self._verdict(calls, patience)

    def _is_stale(self, found: Sequence[tuple[ObservedCall, str, Digests]]) -> bool:
        """Return whether the results of an answer contain nothing new, and record their contents."""
        stale = bool(found)
        for one, call, digests in found:
            earlier = self._results.get(call)
            is_known = digests == earlier if earlier is not None else self._may_repeat_results(one)
            stale = stale and is_known and digests <= self._known
            self._results[call] = digests
        for _, _, digests in found:
            self._known |= digests
        return stale

    def _may_repeat_results(self, one: ObservedCall) -> bool:
        return one.may_repeat_results() and not (one.failed and self._addresses.contain(one.arguments))

    def _is_unchanged(self, calls: Sequence[ObservedCall]) -> bool:
        """Return whether all results of an answer have the gist of earlier ones, and record their gists."""
        gists = {one.gist() for one in calls if not self._addresses.contain(one.arguments)}
        unchanged = bool(gists) and "" not in gists and gists <= self._gists
        self._gists |= gists
        return unchanged

    def _verdict(
        self, calls: Sequence[ObservedCall], patience: Mapping[StuckKind, int]
    ) -> StuckVerdict | None:
        reached: list[StuckKind] = [
            kind for kind in NUDGE_AT if self._streaks[kind] >= patience[kind] * NUDGE_AT[kind]
        ]
        if not reached:
            self._is_nudged = False
            return None
        if not self._is_nudged:
            self._is_nudged = True
            self._nudges += 1
        is_final = self._nudges > MAX_NUDGES or any(
            self._streaks[kind] >= patience[kind] * END_AT[kind] for kind in reached
        )
        return StuckVerdict(reached[0], _describe(reached[0], self._streaks[reached[0]], calls), is_final)


def _format_arguments(calls: Sequence[ObservedCall]) -> str:
    """Return the shortened arguments of the calls."""
    return ", ".join(
        json.dumps(dict(one.arguments), ensure_ascii=False, default=str)[:_TRIED_CHARACTERS]
        for one in calls[:_NAMES]
    )


def _describe(kind: StuckKind, answers: int, calls: Sequence[ObservedCall]) -> str:
    names = sorted({one.name[:_NAME_CHARACTERS] for one in calls})
    named = ", ".join(names[:_NAMES]) + (", …" if len(names) > _NAMES else "")
    match kind:
        case "same":
            return (
                f"the same call of {named} was made {answers} times in a row, always with the same result; "
                f"arguments: {_format_arguments(calls)}"
            )
        case "alternating":
            return (
                f"two calls were made in turn, {answers} in all, the last of {named}, with the same results"
            )
        case "nothing_new":
            return f"the last {answers} calls brought nothing that was not known, the last one of {named}"
        case "unchanged":
            return f"the last {answers} calls all returned the same short text, the last one of {named}"


_MAX_CHARACTERS = 50_000
"""The limit of characters that are searched in one text."""
_MOST = 10_000
_TOKEN = re.compile(r"[^\s\"'<>()\[\]{},|`]{4,500}")
_SPECIFIC = re.compile(r"[./_@#\d]")
"""Marks a token that is not a plain word, such as https://a.test/x, data/2024.csv, user_7 or JIRA-12."""


class KnownAddresses:
    """The addresses, paths and identifiers in the task and in results so far; at most `_MOST`."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def add(self, text: str) -> None:
        """Add the addresses in a text."""
        for token in _TOKEN.findall(text[:_MAX_CHARACTERS]):
            if len(self._known) >= _MOST:
                return
            if _SPECIFIC.search(token):
                self._known.add(token.rstrip(".;:!?"))

    def contain(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether one of the arguments is a known address."""
        return any(isinstance(one, str) and one.strip() in self._known for one in arguments.values())


_NUDGE = (
    "[From maniple, not from the user] You are going round in circles: {words}. Doing it once more will not "
    "change that. Try something else, such as other arguments, another tool or another source; or answer now "
    "with what you have found, and say what is missing. If this goes on, the step ends."
)


class _Watch:
    """The state of the detection in one step; it is not affected by the compaction of the conversation."""

    def __init__(self) -> None:
        self._detector: StuckDetector | None = None
        self._seen: set[str] = set()
        self._stuck: StuckVerdict | None = None

    def update(self, messages: Sequence[AnyMessage], readers: Set[str]) -> StuckVerdict | None:
        """Record the new answers of a conversation; `readers` are the names of tools that only read."""
        if self._detector is None:
            task = (one.text for one in messages if isinstance(one, HumanMessage))
            self._detector = StuckDetector(task)
        for answer, *results in group_messages(messages):
            if not isinstance(answer, AIMessage) or not results or answer.id in self._seen:
                continue
            self._seen.add(str(answer.id))
            given = {one.tool_call_id: one for one in results if isinstance(one, ToolMessage)}
            calls = [(call, given[call["id"]]) for call in answer.tool_calls if call["id"] in given]
            self._stuck = self._detector.observe(
                [
                    ObservedCall(
                        call["name"],
                        call["args"],
                        _result_text(result),
                        is_error=result.status == "error",
                        only_reads=call["name"] in readers,
                    )
                    for call, result in calls
                ]
            )
        return self._stuck


def watch_step() -> AbstractContextManager[None]:
    """Return a context in which all answers count as one step."""
    return enter_step_state(_Watch())


class StuckDetection(AgentMiddleware[Any, Any]):
    """Warns a stuck agent in every prompt until it makes progress; finally raises `StepFailed`.

    Warnings are not stored in the conversation. Outside of `watch_step`, only the conversation is examined.
    """

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        # From the state, because the messages of the request may have been shortened since.
        stuck = (step_state(_Watch) or _Watch()).update(request.state["messages"], reading_tools(request))
        if stuck is None:
            return await handler(request)
        if stuck.is_final:
            raise StepFailed(f"the agent was stuck: {stuck.description}")
        nudge = HumanMessage(_NUDGE.format(words=stuck.description))
        return await handler(request.override(messages=[*request.messages, nudge]))


def _result_text(result: ToolMessage) -> str:
    # Includes the data of pictures and other parts, and the page of a browser action.
    text = result.content if isinstance(result.content, str) else str(result.content)
    page = artifact_fields(result).get("page")
    return f"{text}\n[page {page}]" if page else text
