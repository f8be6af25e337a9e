"""What the wording of a tool call and its result tells: each expression stands beside what it is for.

Words are a hint alone. Where they tell nothing, what counts is that the same comes again and again.
"""

import re
from collections.abc import Mapping
from typing import Any

SHORT_CHARACTERS = 80
"""From here on, the same result of two different calls is no coincidence."""
_ACKNOWLEDGED_CHARACTERS = 200
_FEW = 2
"""So many times and ids in a result are those of the call; more of them are what it found."""
_ECHOED_CHARACTERS = 3
_NAMED_CHARACTERS = 500
"""Arguments of more than this are a program or a text, whose words say nothing of the result."""

_VOLATILE = re.compile(
    "|".join(
        (
            r"\[took\ [\d.]+\ s\]",  # [took 1.4 s]
            # 2026-11-22T10:00:07.250Z, 2026-11-22 10:00
            r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?",
            r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?\b",  # 10:00:07
            r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",  # a UUID
            r"\b0x[0-9a-f]{6,16}\b",  # <object at 0x7f3a5c01d2e0>
            # took 12 ms, in 0.4s, elapsed: 3 seconds
            r"\b(?:took|in|after|elapsed|duration)[ :=]{1,3}[\d.,]{1,12} ?(?:ms|µs|us|s|secs?|seconds?)\b",
            # "durationMs": 13, "response_time": 0.14, "retry_after": 57, elapsed_ms=4
            r"\b(?:duration|elapsed|latency|response_?time|took|retry[-_]?after)(?:_?(?:in_)?(?:ms|s|sec|seconds))?"
            r"[\"']?[ :=]{1,3}[\d.,]{1,24}",
            # request id: ab12cd0007
            r"\b(?:request|trace|session|correlation)[-_ ]?id[\"':= ]{1,4}[\w-]{6,64}",
            r"\b(?:timestamp|epoch)[\"':= ]{1,4}\d{10,13}(?:\.\d{1,9})?",  # "timestamp": 1795341600
        )
    ),
    re.I,
)
_RAISED = re.compile(r"^[\w.]{1,100}(?:Error|Exception|Exit|Interrupt)\b.*", re.M)
"""KeyError: 'x', as the last line of a traceback."""
_CODE_FAILED = re.compile(r"\[exit code [1-9]|\[timeout: stopped after")
"""[exit code 127]"""
_EMPTY = re.compile(
    r"\W*|null|none"  # [], {}, ""
    # No results. No matching documents were found
    r"|no (?:\w+ )?(?:results?|match(?:es)?|hits?|entries|documents?|pages?)(?: (?:were )?found)?\W*"
    # Nothing was found for "berlin 7"; 0 hits
    r"|\W?(?:nothing|0 results?|0 matches|0 hits)(?: (?:was |were )?found)?\b.{0,80}",
    re.I | re.S,
)
_ANSWER = re.compile(r"\W*(?:true|false|yes|no|-?\d[\d.,]*)\W*", re.I)
"""False, 4: small answers, of which many questions have the same."""
_NO_REFUSAL = re.compile(
    r"[\"']?errors?[\"']?\s?[:=]\s?(?:null|none|false|0|\"\"|\[\]|\{\})"  # {"error": null}
    r"|\[no output[^\]]{0,60}\]",  # what a program without a word is told by
    re.I,
)
_REFUSES = re.compile(
    # Element with index 7 does not exist. · "ok": false · couldn't · kein Treffer · 未找到
    r"\b(?:not|no|never|nothing|none|cannot|unable|denied|invalid|missing|unknown|unchanged|errors?|fail\w*"
    r"|nicht|kein\w*|aucun\w*)\b|n[’']t\b|[\"']?\b(?:ok|success)[\"']?\s?[:=]\s?false|[未无無没不]",
    re.I,
)
_SUCCEEDED = re.compile(r"\b(?:ok|done|success\w*|sent|saved|wrote|written)\b", re.I)
"""{"status": "success"}, Sent."""
_ACTS = re.compile(
    r"\b(?:accept|add|append|apply|approve|archive|assign|bash|book|cancel|click|close|comment|commit|complete"
    r"|copy|create|delete|disable|drag|edit|enable|exec\w*|fill|import|insert|install|invite|make|mark|merge"
    r"|mkdir|move|mv|patch|pay|post|press|publish|push|put|python|register|remove|rename|reply|restore|rm|run"
    r"|save|schedule|send|set|share|shell|store|submit|subscribe|tag|tap|type|update|upload|upsert|write)\b"
)
"""createIssue, mail__archive_message, and `insert into …` as an argument."""
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\W]+")
"""Where words of a name meet: create|Issue, git__log."""
_COUNT = re.compile(r"(?<![\w.])(?<!\w:)(?<!line )\d[\d.,]*", re.I)
"""attempt 7 failed; but not a.c:7, line 7 or page7, which are places."""
_COURSE = re.compile(r"\d ?%|\d ?(?:of|/) ?\d|\b(?:left|remaining)\b", re.I)
"""3 of 40 are missing: the numbers say how far it is."""
_WORD = re.compile(r"\w+")


def words_of(name: str) -> str:
    """Return the words of a tool's name, small and with blanks between them."""
    return " ".join(_HUMP.split(name)).casefold()


def changes_something(name: str, arguments: Mapping[str, Any]) -> bool:
    """Say whether a call does something, by the name of its tool or the first word of what it is given."""
    if _ACTS.search(words_of(name)):
        return True
    return any(_ACTS.match(one[:20].casefold()) for one in arguments.values() if isinstance(one, str))


def program_failed(text: str) -> bool:
    """Say whether a program's result tells of its failure."""
    return _CODE_FAILED.search(text) is not None


def is_empty(text: str) -> bool:
    """Say whether a result says that there is none."""
    return _EMPTY.fullmatch(text) is not None


def refuses(text: str) -> bool:
    """Say whether a short result says that something was not done or is not there."""
    return len(text) <= _ACKNOWLEDGED_CHARACTERS and _REFUSES.search(_NO_REFUSAL.sub("", text)) is not None


def acknowledges(name: str, text: str) -> bool:
    """Say whether a result only tells that the tool did what it is for: `Clicked #next` of `click`."""
    if len(text) > _ACKNOWLEDGED_CHARACTERS or refuses(text):
        return False
    said = text.casefold()
    done = (word.removesuffix("e") + "ed" for word in words_of(name).split() if len(word) > 2)
    return _SUCCEEDED.search(said) is not None or any(re.search(rf"\b{one}\b", said) for one in done)


def failure(text: str) -> str:
    """Return what a failure says that is its own: of a traceback, what was raised."""
    raised = _RAISED.findall(text)
    return raised[-1] if raised else text


def steady(text: str) -> str:
    """Return a text without the times and ids that each call has anew."""
    places = _VOLATILE.findall(text)
    stays = _VOLATILE.sub("·", text) if len(places) <= _FEW else text
    # Who asks for the time gets nothing else.
    return " ".join((stays if re.search(r"\w", stays) else text).split())


def without_counts(text: str) -> str:
    """Return a short refusal without its numbers, but for those that say how far it is."""
    return text if _COURSE.search(text) or not refuses(text) else _COUNT.sub("·", text)


def without_echo(text: str, arguments: Mapping[str, Any]) -> str:
    """Return a failure without the arguments that it names: another name that is not there is no news."""
    for value in arguments.values():
        given = str(value)
        if _ECHOED_CHARACTERS <= len(given) <= len(text):
            text = text.replace(given, "·")
    return text


def gist(text: str, arguments: Mapping[str, Any]) -> str:
    """Return what a short result says, "" of longer and of small ones.

    Of a refusal the words of the arguments do not count: that another one is not there is no news.
    """
    if len(text) > SHORT_CHARACTERS or _ANSWER.fullmatch(text):
        return ""
    if not refuses(text):
        return steady(text)
    said = " ".join(map(str, arguments.values())) if arguments else ""
    given = set(_WORD.findall(said.casefold())) if len(said) <= _NAMED_CHARACTERS else set()
    return _WORD.sub(lambda word: "·" if word[0].casefold() in given else word[0], steady(text))
