"""Comparison of tool calls and results, independent of their wording, for the detection of repeated work."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from maniple.types import is_dict, is_mapping

_SENTENCE_CHARACTERS = 10
_ECHO_MARGIN_CHARACTERS = 10
"""A call whose argument exceeds its result by more than this does more than to print it."""
_LOOKED_THROUGH_CHARACTERS = 50_000
PROGRAM_ARGUMENTS = frozenset({"code", "cmd", "command", "script"})
"""Names of arguments that contain a program."""
_COMMENT = re.compile(r"(?:^|(?<=\s))#[^'\"\n]{0,200}$", re.M)
"""For example: `ls  # look once more`"""
_ANCHOR = re.compile(r"\A(https?://[^\s#]+)#(?![/!])\S*\Z", re.I)
"""For example: https://a.test/x#part-2. A fragment that begins with `/` or `!` is a page of its own."""
_WAITING_TOOL = re.compile(r"\b(?:sleep|wait|poll|status|progress)\b")
"""For example: `job_status`"""
_WAITING_ARGUMENT = re.compile(r"(?<![a-z])(?:sleep|wait)(?![a-z])")
"""For example: `sleep 20; cat state`"""
_WAITING_RESULT = re.compile(
    r"\b(?:pending|queued|in[ _-]progress|running|processing|loading|not (?:yet )?ready|waiting)\b", re.I
)
"""For example: `build 42: in progress`"""


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """A tool call and the text of its result.

    `only_reads` is declared by the tool or its server. Without it, `acts` guesses by names.
    """

    name: str
    arguments: Mapping[str, Any]
    result: str
    is_error: bool = False
    only_reads: bool = False

    @property
    def call(self) -> str:
        """The normalised call, which is equal for calls with the same meaning."""
        return f"{self.name} {json.dumps(_normalize(self.arguments), sort_keys=True, default=str)}"

    @property
    def failed(self) -> bool:
        """Whether the call failed or its program did."""
        return self.is_error or is_program_failure(self.result)

    @property
    def acts(self) -> bool:
        """Whether the call probably changes something."""
        return not self.only_reads and is_change(self.name, self.arguments)

    @property
    def is_blind(self) -> bool:
        """Whether it acts and its result is a mere acknowledgement, so that repeating it may be progress."""
        return self.acts and not self.failed and is_acknowledgement(self.name, self.result)

    def digest_result(self) -> frozenset[str]:
        """Return digests of the result's contents, which are equal for results with the same meaning.

        A list of hits has a digest for each address. A failed program has one of its exception. A sentence
        that only repeats an argument has none. Any other text has one. Times and ids that differ in each call
        are ignored. So are numbers in a refusal, and arguments that a failure repeats. Results longer than
        `_LOOKED_THROUGH_CHARACTERS`, such as pictures, are compared unchanged.
        """
        if len(self.result) > _LOOKED_THROUGH_CHARACTERS:
            return frozenset({_digest(self.result)})
        if self._is_echo():
            return frozenset()
        if addresses := _addresses(self.result):
            return frozenset(map(_digest, addresses))
        text = self.result
        if self.failed:
            text = mask_arguments(extract_failure(text), self.arguments)
        text = mask_volatile(text)
        return frozenset({_digest(text if self.is_polling() else mask_counts(text))})

    def may_repeat_results(self) -> bool:
        """Return whether a known result means no progress, although the call is new.

        The acknowledgement of an action is always the same and therefore does not count as repetition.
        """
        if self.failed or self._is_echo():
            return True
        if self.acts or (not self.only_reads and is_acknowledgement(self.name, self.result)):
            return False
        if len(self.result) < SHORT_CHARACTERS and not _addresses(self.result):
            return is_empty_result(self.result)
        return True

    def gist(self) -> str:
        """Return the gist of a short result without the words of the arguments; "" if it is informative.

        It works in any language: an agent that gets the same gist for all arguments may have learned nothing.
        """
        if _addresses(self.result):
            return ""
        is_uninformative = (
            is_refusal(self.result) if self.acts else not is_acknowledgement(self.name, self.result)
        )
        return extract_gist(self.result, self.arguments) if is_uninformative else ""

    def _is_echo(self) -> bool:
        """Return whether the result only repeats the argument, as `echo` does."""
        text, given = self.result.strip(), [value for value in self.arguments.values() if value is not None]
        if len(given) != 1 or not isinstance(given[0], str):
            return False
        is_sentence = len(text) >= _SENTENCE_CHARACTERS and " " in text
        return is_sentence and text in given[0] and len(given[0]) <= len(text) + _ECHO_MARGIN_CHARACTERS

    def is_polling(self) -> bool:
        """Return whether the call waits for something or polls it."""
        if _WAITING_TOOL.search(split_words(self.name)):
            return True
        if len(self.result) <= SHORT_CHARACTERS and _WAITING_RESULT.search(self.result):
            return True
        arguments = " ".join(value for value in self.arguments.values() if isinstance(value, str))
        return _WAITING_ARGUMENT.search(arguments.casefold()) is not None


def _normalize(value: Any) -> Any:
    """Return arguments without differences that do not matter.

    These are: blanks, case, empty values, int or float, comments in programs, and the fragments of URLs.
    """
    if is_mapping(value):
        normalized = {str(name): _normalize(_without_comments(str(name), one)) for name, one in value.items()}
        return {name: one for name, one in normalized.items() if one not in ("", None, [], {})}
    if isinstance(value, list | tuple):
        return [_normalize(one) for one in cast("Sequence[Any]", value)]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return f"{value:g}" if abs(value) < 1e6 else str(value)
    return " ".join(_ANCHOR.sub(r"\1", str(value)).casefold().split())


def _without_comments(name: str, value: Any) -> Any:
    return _COMMENT.sub("", value) if name in PROGRAM_ARGUMENTS and isinstance(value, str) else value


def _addresses(text: str) -> set[str]:
    if not text.startswith("["):
        return set()
    try:
        hits, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return set()
    if not all(is_dict(hit) and isinstance(hit.get("url"), str) for hit in hits):
        return set()
    return {hit["url"] for hit in hits}


def _digest(text: str) -> str:
    return hashlib.blake2s(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


SHORT_CHARACTERS = 80
"""Results of at least this length are unlikely to be equal by coincidence."""
_ACKNOWLEDGED_CHARACTERS = 200
_FEW = 2
"""A result with at most this many times and ids has those of the call. More of them are its content."""
_ECHOED_CHARACTERS = 3
_NAMED_CHARACTERS = 500
"""Longer arguments are programs or texts, whose words are not compared with the result."""

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
"""For example `KeyError: 'x'`, the last line of a traceback."""
_CODE_FAILED = re.compile(r"\[exit code [1-9]|\[timeout: stopped after")
"""For example: `[exit code 127]`"""
_EMPTY = re.compile(
    r"\W*|null|none"  # [], {}, ""
    # No results. No matching documents were found
    r"|no (?:\w+ )?(?:results?|match(?:es)?|hits?|entries|documents?|pages?)(?: (?:were )?found)?\W*"
    # Nothing was found for "berlin 7"; 0 hits
    r"|\W?(?:nothing|0 results?|0 matches|0 hits)(?: (?:was |were )?found)?\b.{0,80}",
    re.I | re.S,
)
_ANSWER = re.compile(r"\W*(?:true|false|yes|no|-?\d[\d.,]*)\W*", re.I)
"""For example `False` or `4`: short answers that many different calls return."""
_NO_REFUSAL = re.compile(
    r"[\"']?errors?[\"']?\s?[:=]\s?(?:null|none|false|0|\"\"|\[\]|\{\})"  # {"error": null}
    r"|\[no output[^\]]{0,60}\]",  # the sandbox's note for a program without output
    re.I,
)
_REFUSES = re.compile(
    # Element with index 7 does not exist. · "ok": false · couldn't · kein Treffer · 未找到
    r"\b(?:not|no|never|nothing|none|cannot|unable|denied|invalid|missing|unknown|unchanged|errors?|fail\w*"
    r"|nicht|kein\w*|aucun\w*)\b|n[’']t\b|[\"']?\b(?:ok|success)[\"']?\s?[:=]\s?false|[未无無没不]",
    re.I,
)
_SUCCEEDED = re.compile(r"\b(?:ok|done|success\w*|sent|saved|wrote|written)\b", re.I)
"""For example `{"status": "success"}` or `Sent.`"""
_ACTS = re.compile(
    r"\b(?:accept|add|append|apply|approve|archive|assign|bash|book|cancel|click|close|comment|commit|complete"
    r"|copy|create|delete|disable|drag|edit|enable|exec\w*|fill|import|insert|install|invite|make|mark|merge"
    r"|mkdir|move|mv|patch|pay|post|press|publish|push|put|python|register|remove|rename|reply|restore|rm|run"
    r"|save|schedule|send|set|share|shell|store|submit|subscribe|tag|tap|type|update|upload|upsert|write)\b"
)
"""For example `createIssue`, `mail__archive_message`, or the argument `insert into …`."""
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\W]+")
"""The borders of words in a name: create|Issue, git|__|log."""
_COUNT = re.compile(r"(?<![\w.])(?<!\w:)(?<!line )\d[\d.,]*", re.I)
"""For example "attempt 7 failed"; but not a.c:7, line 7 or page7, which are locations."""
_PROGRESS = re.compile(r"\d ?%|\d ?(?:of|/) ?\d|\b(?:left|remaining)\b", re.I)
"""For example "3 of 40 are missing": here the numbers show progress."""
_WORD = re.compile(r"\w+")


def split_words(name: str) -> str:
    """Return the words of a tool's name in lower case, separated by blanks."""
    return " ".join(_HUMP.split(name)).casefold()


def is_change(name: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether a call changes something, by the name of its tool or the first word of an argument."""
    if _ACTS.search(split_words(name)):
        return True
    return any(_ACTS.match(one[:20].casefold()) for one in arguments.values() if isinstance(one, str))


def is_program_failure(text: str) -> bool:
    """Return whether a program's result reports a failure."""
    return _CODE_FAILED.search(text) is not None


def is_empty_result(text: str) -> bool:
    """Return whether a result states that nothing was found."""
    return _EMPTY.fullmatch(text) is not None


def is_refusal(text: str) -> bool:
    """Return whether a short result states that something was not done or does not exist."""
    return len(text) <= _ACKNOWLEDGED_CHARACTERS and _REFUSES.search(_NO_REFUSAL.sub("", text)) is not None


def is_acknowledgement(name: str, text: str) -> bool:
    """Return whether a result only confirms the tool's action, such as `Clicked #next` for `click`."""
    if len(text) > _ACKNOWLEDGED_CHARACTERS or is_refusal(text):
        return False
    lowered = text.casefold()
    done = (word.removesuffix("e") + "ed" for word in split_words(name).split() if len(word) > 2)
    return _SUCCEEDED.search(lowered) is not None or any(re.search(rf"\b{one}\b", lowered) for one in done)


def extract_failure(text: str) -> str:
    """Return the specific part of a failure: the last exception of a traceback, else the whole text."""
    raised = _RAISED.findall(text)
    return raised[-1] if raised else text


def mask_volatile(text: str) -> str:
    """Return a text without times and ids that differ in each call."""
    found = _VOLATILE.findall(text)
    masked = _VOLATILE.sub("·", text) if len(found) <= _FEW else text
    # Unmasked if nothing else is left, as for a tool that returns the time.
    return " ".join((masked if re.search(r"\w", masked) else text).split())


def mask_counts(text: str) -> str:
    """Return a short refusal without its numbers, unless they show progress."""
    return text if _PROGRESS.search(text) or not is_refusal(text) else _COUNT.sub("·", text)


def mask_arguments(text: str, arguments: Mapping[str, Any]) -> str:
    """Return a failure without the arguments that it repeats: another missing name is nothing new."""
    for value in arguments.values():
        given = str(value)
        if _ECHOED_CHARACTERS <= len(given) <= len(text):
            text = text.replace(given, "·")
    return text


def extract_gist(text: str, arguments: Mapping[str, Any]) -> str:
    """Return the gist of a short result; "" for long results and for answers such as `False`.

    In a refusal, words of the arguments are masked: another missing name is nothing new.
    """
    if len(text) > SHORT_CHARACTERS or _ANSWER.fullmatch(text):
        return ""
    if not is_refusal(text):
        return mask_volatile(text)
    joined = " ".join(map(str, arguments.values())) if arguments else ""
    given: set[str] = set(_WORD.findall(joined.casefold())) if len(joined) <= _NAMED_CHARACTERS else set()
    return _WORD.sub(lambda word: "·" if word[0].casefold() in given else word[0], mask_volatile(text))
