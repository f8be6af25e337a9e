"""Signs in an answer that its member did not do the work: an announced call, or results without any call.

The signs are of form and hold in every language; the few words are for what has no form.
"""

import re
from typing import Literal

from maniple.agents.deliverables import find_claimed_files, find_file_names, prose_of, without_code
from maniple.llms import read_json
from maniple.types import Worker, is_dict, is_list

HANDS_ONLY: frozenset[Worker] = frozenset({"browser", "file_manager"})
"""Members all of whose work is done with tools."""
_MAX_CHARACTERS = 50_000
_WHOLE_FENCE = re.compile(r"\A\s*(`{3,}|~{3,})[\w-]*\s*\n(?P<inside>.*)\n?\s*\1\s*\Z", re.DOTALL)
_CALL_MARKS = re.compile(
    r"```[ \t]*(?:tool_code|tool_call|function_call|tool_use)\b"
    r"|<\|?(?:tool_calls?|tool_use|function_calls?|function=|invoke)\b"
    r"|<\|python_tag\|>|\[TOOL_CALLS\]|<｜tool▁calls?▁begin｜>|<\|tool_calls?_(?:section_)?begin\|>",
    re.IGNORECASE,
)
_NAME_KEYS = ("name", "tool", "tool_name", "function", "action", "recipient_name")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "tool_input", "input", "action_input")
_CALL_CLOSING = re.compile(r"^[ \t]*```[ \t]*$|</[^>\n]{1,40}>|<[|｜][^>\n]{0,40}end[|｜]>", re.MULTILINE)
_INLINE_CODE = re.compile(r"(?<!`)`[^`\n]{1,200}`(?!`)")
_MARKUP = " \t*_`>#"
_ANNOUNCES = re.compile(
    r"(?:(?:ok(?:ay)?|good|great|alright|so|gut|also|bon|bien)[,.!]?\s+)?(?:"
    r"now,? (?:i|let)\b|let me(?! know)\b|let[’']s\b|next,? i\b"
    r"|i(?:[’']ll| will) now\b|i[’']?(?: a)?m (?:now )?going to\b"
    r"|(?:jetzt|nun|als nächstes) (?:\w+ ){1,2}?ich\b|ich \w+ (?:jetzt|nun)\b"
    r"|lass mich\b|ich werde (?:jetzt|nun)\b"
    r"|je vais (?:maintenant )?\w+er\b|maintenant,? je\b|laisse[zr]?[- ]moi\b"
    r"|ahora (?:voy|lo|la)\b|voy a\b|déjame\b"
    r"|(?:现在|接下来|下面)[，,]?(?:我|让我|来)|让我|我(?:现在|将|来|这就)|我先)",
    re.IGNORECASE,
)
"""Beginnings of a sentence that says what its speaker does next."""
_LAST_SENTENCE = re.compile(r"[.!?。！？…]\s+|[。！？]|\n")
_CUT_SENTENCE = 300
_ADDRESS = re.compile(r"https?://[^\s<>\"'`)\]，。]+", re.IGNORECASE)
_LIST_MARK = re.compile(r"^[ \t>]*\d{1,3}[.)、][ \t]*", re.MULTILINE)
_CITATION = re.compile(r"\[\d{1,4}\]")
_NUMBER = re.compile(r"(?<![A-Za-z_])\d+(?:[.,'\u202f\u00a0 ]\d{3})*(?:[.,]\d+)?")
_MAX_NUMBERS = 60
_GIVES_UP = re.compile(
    r"[\s*#_`]{0,50}STEP FAILED\b|^[\s*#_`>-]{0,20}NEEDS?\b[\s*_`]{0,10}[:：]", re.MULTILINE
)


Announcement = Literal["call", "colon", "words"]


def find_announcement(answer: str) -> Announcement | None:
    """Return how an answer is, or announces at its end, an unmade tool call; None if it does not."""
    text = answer.strip()
    if not text:
        return None
    if _is_call(text) or _has_call_at_end(text):
        return "call"
    last_line = text.rpartition("\n")[2].strip(_MARKUP)
    if last_line.endswith((":", "：")):
        return "colon"
    last = [one for one in _LAST_SENTENCE.split(last_line) if one.strip()][-1:]
    sentence = last[0].strip(_MARKUP) if last else ""
    return "words" if len(sentence) <= _CUT_SENTENCE and _ANNOUNCES.match(sentence) else None


def _is_call(text: str) -> bool:
    found = _WHOLE_FENCE.match(text[:_MAX_CHARACTERS])
    inner = (found["inside"] if found else text).strip()
    if not (inner.startswith(("{", "[")) and inner.endswith(("}", "]"))):
        return False
    try:
        value = read_json(inner)
    except ValueError:
        return False
    first = value[0] if is_list(value) and value else value
    if not is_dict(first):
        return False
    if isinstance(first.get("tool_calls"), list) or is_dict(first.get("function")):
        return True
    has_name = any(isinstance(first.get(key), str) for key in _NAME_KEYS)
    return has_name and any(is_dict(first.get(key)) for key in _ARGUMENT_KEYS)


def _has_call_at_end(text: str) -> bool:
    """Return whether the text ends with a call in some model's marks; prose follows an example."""
    shown = _INLINE_CODE.sub(" ", text[-_MAX_CHARACTERS:])
    marks = [*_CALL_MARKS.finditer(shown)]
    if not marks:
        return False
    _, *after = _CALL_CLOSING.split(shown[marks[-1].end() :])
    return not after or not after[-1].strip()


def find_unsupported(member: Worker, given: str, asked: str, answer: str) -> str:
    """Return what in the answer of a member that called no tool can only come from one; "" for nothing.

    `given` is all that the member was shown of its step, and `asked` the step or request itself. A number is
    new if it neither occurs in `given` nor is the sum or the difference of two that do. Failures and
    questions claim nothing.
    """
    text = answer.strip()
    if not text or _GIVES_UP.search(text) or text.rstrip(_MARKUP).endswith(("?", "？")):
        return ""
    if member in HANDS_ONLY:
        return "its work"
    prose = prose_of(text)
    if _ADDRESS.search(asked_prose := without_code(asked)):
        return "what the page shows"
    if find_file_names(asked_prose):
        return "what was done with the file"
    if found := [one for one in _ADDRESS.findall(without_code(text)) if one.rstrip(".,;") not in given]:
        return found[0][:100]
    if find_claimed_files(text, with_links=False):
        return "a written file"
    return _find_new_number(prose, given)


def _find_new_number(prose: str, given: str) -> str:
    known = {_value(one) for one in _NUMBER.findall(given)}
    shown = _CITATION.sub(" ", _LIST_MARK.sub("", prose))
    for one in _NUMBER.findall(shown):
        value = _value(one)
        if value not in known and not _is_derived(value, known):
            return one
    return ""


def _value(number: str) -> float:
    """Return the value of a number with any sign for thousands and decimals."""
    compact = re.sub(r"['\u202f\u00a0 ]", "", number)
    sign = "," if compact.rfind(",") > compact.rfind(".") else "."
    whole, mark, part = compact.rpartition(sign)
    if mark and len(part) != 3:
        return float(f"{re.sub('[.,]', '', whole)}.{part}")
    return float(re.sub("[.,]", "", compact))


def _is_derived(value: float, known: set[float]) -> bool:
    """Return whether a value follows from the known ones without a program: 3 pm is 15:00."""
    if 12 < value <= 24 and value - 12 in known:
        return True
    few = sorted(known)[:_MAX_NUMBERS]
    return any(value + one in known or value - one in known for one in few if one)
