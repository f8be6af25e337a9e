"""The one parser of a user's answers: to a plan, a call that needs approval, one whose result is unknown.

Terminal, page, HTTP API, MCP and parent graphs pass the answer on as it came: a text, a JSON object with a
`type` (also as text), or `True` and `False` (as LangGraph's examples resume). What is no answer is
`UnclearDecision`: the question is asked again, and the text is never taken for a rejection, a result of a
tool or an edit.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from maniple.types import is_mapping

APPROVAL_ANSWERS: Mapping[str, str] = {
    "approve": 'yes, y, ok or approve; or {"type": "approve"}',
    "always": '{"type": "approve", "always": true} also approves its like for the rest of the run',
    "edit": '{"type": "edit", "args": {…}} runs the call with these arguments',
    "reject": 'a text that begins with no or n, or /reject WHY; or {"type": "reject", "message": WHY}',
}
UNKNOWN_RESULT_ANSWERS: Mapping[str, str] = {
    "run again": 'run again; or {"type": "run again"}',
    "skip": 'skip; or {"type": "skip"}',
    "result": 'result: and what the result was; or {"type": "result", "message": TEXT}',
}
PLAN_ANSWERS: Mapping[str, str] = {
    "accept": 'accept, yes, ok and the like; or {"type": "accept"}',
    "edit": 'the edited plan as JSON: {"title": …, "steps": […]}',
    "revise": "any other text: what should be different",
}
"""What a question takes, by the kind of answer; the payload of an interrupt has it as `answers`."""

_ACCEPTANCE = (
    *("accept", "accepted", r"\[accepted\]", "approve", "approved", "yes", "y", "ok", "okay", "go"),
    *("yep", "yeah", "sure", "ja", "oui", "sí", "接受", "同意", "批准", "好", "好的", "可以", "是", "是的"),
)
_PLAN_ACCEPTANCE = (
    *("looks? (?:good|great|fine)", "all good", "(?:that |this )?works(?: for me)?", "lgtm", "sounds good"),
    *("(?:very )?good", "great", "perfect", "fine", "agreed", "go for it"),
    *("(?:please )?(?:go ahead|proceed|start|begin|continue|do it|go on)", "i (?:accept|approve|agree)"),
    *(
        "(?:(?:das |es )?passt|sieht gut aus|gut)(?: so)?",
        "ja so",
        "in ordnung",
        "einverstanden",
        "genehmigt",
    ),
    *("leg los", "los", "mach(?: das| es)?(?: so)?", "so machen", "weiter", "gerne", "klar", "perfekt"),
    *("d['’]accord", "(?:c['’]est )?(?:bon|parfait|bien)", "ça marche", "ça me va", "vas-y"),
    *("allez-y", "continue[rz]?", "j['’](?:accepte|approuve)", "entendu"),
    *("si", "vale", "de acuerdo", "está bien", "me parece bien", "(?:se ve )?bien", "perfecto"),
    *("adelante", "aprobado", "acepto", "apruebo", "procede", "continúa"),
    *("没问题", "没有问题", "行", "开始吧?", "继续吧?", "就这样吧?", "通过", "看起来不错", "不错", "很好"),
)
_POLITE = "please|thanks?(?: you)?|bitte|danke|merci|s['’]il (?:te|vous) pla[iî]t|gracias|por favor|谢谢|请"
_REJECTION = re.compile(
    r"(?:(?:no|n|reject|rejected|nein|nee|nö|non|不)(?!\w)|不要(?!紧)|不行|不同意|不可以|拒绝)", re.IGNORECASE
)
"""Begins a rejection, in the languages whose words of acceptance are known."""
_BARE_REJECTION = re.compile(rf"{_REJECTION.pattern}[\s.!。！]*", re.IGNORECASE)
_REJECT_COMMAND = re.compile(r"/reject(?!\w)\s*", re.IGNORECASE)
_RERUN = re.compile(r"(?:run (?:it )?again|again|re-?run|retry|再运行|重新运行)[\s.!。！]*")
_SKIP = re.compile(r"(?:/?skip|跳过)[\s.!。！]*")
_RESULT = re.compile(r"/?result(?:\s*[:：]\s*|\s+(?=\S))(?P<text>.+)", re.IGNORECASE | re.DOTALL)
_MAX_ACCEPTANCE_CHARACTERS = 60


def _compile_acceptance(phrases: Iterable[str]) -> re.Pattern[str]:
    """Return what matches phrases of acceptance, with polite words and signs, and nothing else."""
    words = "|".join(sorted(phrases, key=len, reverse=True))
    return re.compile(
        rf"(?:(?:{_POLITE})[\s,;]+)?(?:{words})(?:[\s,;.!…–—，。！、；-]+(?:{words}|{_POLITE}))*[\s.!…。！]*"
    )


_CALL_ACCEPTED = _compile_acceptance(_ACCEPTANCE)
_PLAN_ACCEPTED = _compile_acceptance((*_ACCEPTANCE, *_PLAN_ACCEPTANCE))


@dataclass(frozen=True, slots=True)
class CallApproval:
    """The call runs as shown; with `always`, the later ones of its kind run, too."""

    always: bool = False


@dataclass(frozen=True, slots=True)
class CallEdit:
    """The call runs with these arguments instead."""

    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallRejection:
    """The call does not run; `reason` is the user's text, unchanged, or ""."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class CallRerun:
    """The call whose result is unknown runs again."""


@dataclass(frozen=True, slots=True)
class CallSkip:
    """The call whose result is unknown does not run again."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """The user knows what the result of the call was."""

    text: str


@dataclass(frozen=True, slots=True)
class UnclearDecision:
    """The answer decides nothing; `explanation` says what the question takes."""

    explanation: str


def parse_approval(answer: object) -> CallApproval | CallEdit | CallRejection | UnclearDecision:
    """Parse the answer to a call that needs approval.

    Only an object can approve for the rest of the run: `{"type": "approve", "always": true}`.
    A text accepts with words of acceptance and nothing else, and rejects if it begins with "no" in a known
    language, with "n", or with the command `/reject`, which is no part of the reason.
    """
    answer = read_json_object(answer)
    if isinstance(answer, bool):
        return CallApproval() if answer else CallRejection()
    if is_mapping(answer):
        kind, arguments = _type_of(answer), answer.get("args")
        if kind == "edit" and is_mapping(arguments):
            return CallEdit(arguments)
        if kind in ("reject", "rejected"):
            return CallRejection(_message_of(answer))
        is_lasting = answer.get("always") is True
        return CallApproval(is_lasting) if is_acceptance(answer) else _unclear(APPROVAL_ANSWERS)
    text = answer.strip() if isinstance(answer, str) else ""
    if is_acceptance(text):
        return CallApproval()
    return find_rejection(text) or _unclear(APPROVAL_ANSWERS)


def find_rejection(text: str) -> CallRejection | None:
    """Return the rejection in a text that begins with a "no" or `/reject`; None if it rejects nothing."""
    text = text.strip()
    if command := _REJECT_COMMAND.match(text):
        return CallRejection(text[command.end() :])
    if _BARE_REJECTION.fullmatch(text):
        return CallRejection()
    return CallRejection(text) if _REJECTION.match(text) else None


def parse_unknown_result(answer: object) -> CallRerun | CallSkip | CallResult | UnclearDecision:
    """Parse the answer to a call of which it is unknown whether it did its work."""
    answer = read_json_object(answer)
    text = answer.strip() if isinstance(answer, str) else ""
    if is_mapping(answer):
        text, message = _type_of(answer), _message_of(answer)
        if text == "result" and message:
            return CallResult(message)
    if _RERUN.fullmatch(text.casefold()):
        return CallRerun()
    if _SKIP.fullmatch(text.casefold()):
        return CallSkip()
    if isinstance(answer, str) and (found := _RESULT.fullmatch(text)):
        return CallResult(found["text"])
    return _unclear(UNKNOWN_RESULT_ANSWERS)


def read_json_object(answer: object) -> object:
    """Return the object in a text of JSON, as clients send it that can only send texts; else the answer."""
    if not isinstance(answer, str) or not answer.lstrip().startswith("{"):
        return answer
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        return answer


def is_acceptance(answer: object) -> bool:
    """Return whether `answer` is words of acceptance alone, `True`, or has one as its `type`.

    An object with a further message accepts only if the message does: it may ask for something else.
    """
    if isinstance(answer, bool):
        return answer
    if is_mapping(answer) and (message := _message_of(answer)) and not is_acceptance(message):
        return False
    text = _normalize(answer)
    return len(text) <= _MAX_ACCEPTANCE_CHARACTERS and _CALL_ACCEPTED.fullmatch(text) is not None


def is_plan_acceptance(answer: object) -> bool:
    """Return whether `answer` accepts a plan: as `is_acceptance`, or in a few words and nothing else.

    A longer text, a question and a text with any further word may ask for something else: they do not.
    """
    if is_acceptance(answer):
        return True
    text = _normalize(answer)
    is_short = isinstance(answer, str) and len(text) <= _MAX_ACCEPTANCE_CHARACTERS
    return is_short and _PLAN_ACCEPTED.fullmatch(text) is not None


def parse_plan_feedback(text: str) -> str:
    """Return what a text asks to change in a plan: the text without the command `/reject`."""
    text = text.strip()
    command = _REJECT_COMMAND.match(text)
    return (text[command.end() :] or text) if command else text


def _unclear(answers: Mapping[str, str]) -> UnclearDecision:
    takes = "; ".join(f"{kind}: {how}" for kind, how in answers.items())
    return UnclearDecision(
        f"The answer was not understood, and nothing was decided. Answer with one of: {takes}."
    )


def _type_of(answer: Mapping[Any, Any]) -> str:
    return str(answer.get("type") or "").replace("_", " ").strip().casefold()


def _message_of(answer: Mapping[Any, Any]) -> str:
    text = next((answer[key] for key in ("message", "reason", "text", "result") if answer.get(key)), "")
    return str(text).strip()


def _normalize(answer: object) -> str:
    if is_mapping(answer):
        return _type_of(answer)
    return answer.replace("_", " ").strip().casefold() if isinstance(answer, str) else ""
