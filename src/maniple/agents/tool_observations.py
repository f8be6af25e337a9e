"""What of a tool call and its result makes it the same as another one, whatever their wording."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SENTENCE_CHARACTERS = 10
_SAYING_CHARACTERS = 10
"""A call that is longer than its sentence by more than this does more than to say it."""
_LOOKED_THROUGH_CHARACTERS = 50_000
_PROGRAM = frozenset({"code", "cmd", "command", "script"})
"""Arguments that hold a program."""
_COMMENT = re.compile(r"(?:^|(?<=\s))#[^'\"\n]{0,200}$", re.M)
"""ls  # look once more"""
_ANCHOR = re.compile(r"\A(https?://[^\s#]+)#(?![/!])\S*\Z", re.I)
"""https://a.test/x#part-2; what begins with a slash or an exclamation mark is a page of its own."""
_WAITING_TOOL = re.compile(r"\b(?:sleep|wait|poll|status|progress)\b")
"""job_status"""
_WAITING_ARGUMENT = re.compile(r"(?<![a-z])(?:sleep|wait)(?![a-z])")
"""sleep 20; cat state"""
_WAITING_RESULT = re.compile(
    r"\b(?:pending|queued|in[ _-]progress|running|processing|loading|not (?:yet )?ready|waiting)\b", re.I
)
"""build 42: in progress"""


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """A tool call, and the text that came of it.

    `only_reads` is what the tool, or its server, says of itself; without its word, names are judged by.
    """

    name: str
    arguments: Mapping[str, Any]
    result: str
    is_error: bool = False
    only_reads: bool = False

    @property
    def call(self) -> str:
        """What this call has in common with those that ask for the same."""
        return f"{self.name} {json.dumps(_plain(self.arguments), sort_keys=True, default=str)}"

    @property
    def failed(self) -> bool:
        """Whether it failed, be it as a call or as a program."""
        return self.is_error or is_program_failure(self.result)

    @property
    def acts(self) -> bool:
        """Whether it changes something, as far as can be told."""
        return not self.only_reads and is_change(self.name, self.arguments)

    @property
    def is_blind(self) -> bool:
        """Whether it acts and does not tell what came of it: the same call may be the next one of many."""
        return self.acts and not self.failed and is_acknowledgement(self.name, self.result)

    def found(self) -> frozenset[str]:
        """Return what the result says, a digest for each thing that counts by itself.

        Of a list of hits these are the addresses; of code that raised, what it raised; of a sentence that the
        call was given and that comes back, none; else it is one text.
        Times and ids that each call has anew do not count, nor do the numbers of a refusal, nor what a
        failure repeats of the arguments.
        Longer ones than any that a conversation holds, such as pictures, are compared as they are.
        """
        if len(self.result) > _LOOKED_THROUGH_CHARACTERS:
            return frozenset({_digest(self.result)})
        if self._only_repeats():
            return frozenset()
        if addresses := _addresses(self.result):
            return frozenset(map(_digest, addresses))
        text = self.result
        if self.failed:
            text = mask_arguments(extract_failure(text), self.arguments)
        text = mask_volatile(text)
        return frozenset({_digest(text if self.waits() else mask_counts(text))})

    def could_be_known(self) -> bool:
        """Say whether a result that was seen before teaches nothing, although the call is a new one.

        The words with which a tool confirms that it did something are always the same.
        """
        if self.failed or self._only_repeats():
            return True
        if self.acts or (not self.only_reads and is_acknowledgement(self.name, self.result)):
            return False
        if len(self.result) < SHORT_CHARACTERS and not _addresses(self.result):
            return is_empty_result(self.result)
        return True

    def gist(self) -> str:
        """Return what a short result says beside the words of the call, if that could say nothing; else "".

        Whatever its language: who is told the same whatever the arguments may be none the wiser.
        """
        if _addresses(self.result):
            return ""
        told = is_refusal(self.result) if self.acts else not is_acknowledgement(self.name, self.result)
        return extract_gist(self.result, self.arguments) if told else ""

    def _only_repeats(self) -> bool:
        """Say whether the call did no more than say a sentence, as `echo` does."""
        text, given = self.result.strip(), [value for value in self.arguments.values() if value is not None]
        if len(given) != 1 or not isinstance(given[0], str):
            return False
        is_sentence = len(text) >= _SENTENCE_CHARACTERS and " " in text
        return is_sentence and text in given[0] and len(given[0]) <= len(text) + _SAYING_CHARACTERS

    def waits(self) -> bool:
        """Say whether it looks after something that takes its time."""
        if _WAITING_TOOL.search(split_words(self.name)):
            return True
        if len(self.result) <= SHORT_CHARACTERS and _WAITING_RESULT.search(self.result):
            return True
        said = " ".join(value for value in self.arguments.values() if isinstance(value, str))
        return _WAITING_ARGUMENT.search(said.casefold()) is not None


def _plain(value: Any) -> Any:
    """Return arguments without what makes no difference.

    That is: blanks, case, empty ones, kinds of numbers, comments of programs, which part of a page is named.
    """
    if isinstance(value, Mapping):
        plain = {str(name): _plain(_without_comments(str(name), one)) for name, one in value.items()}
        return {name: one for name, one in plain.items() if one not in ("", None, [], {})}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return f"{value:g}" if abs(value) < 1e6 else str(value)
    return " ".join(_ANCHOR.sub(r"\1", str(value)).casefold().split())


def _without_comments(name: str, value: Any) -> Any:
    return _COMMENT.sub("", value) if name in _PROGRAM and isinstance(value, str) else value


def _addresses(text: str) -> set[str]:
    if not text.startswith("["):
        return set()
    try:
        hits, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return set()
    if not all(isinstance(hit, dict) and isinstance(hit.get("url"), str) for hit in hits):
        return set()
    return {hit["url"] for hit in hits}


def _digest(text: str) -> str:
    return hashlib.blake2s(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


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


def split_words(name: str) -> str:
    """Return the words of a tool's name, small and with blanks between them."""
    return " ".join(_HUMP.split(name)).casefold()


def is_change(name: str, arguments: Mapping[str, Any]) -> bool:
    """Say whether a call does something, by the name of its tool or the first word of what it is given."""
    if _ACTS.search(split_words(name)):
        return True
    return any(_ACTS.match(one[:20].casefold()) for one in arguments.values() if isinstance(one, str))


def is_program_failure(text: str) -> bool:
    """Say whether a program's result tells of its failure."""
    return _CODE_FAILED.search(text) is not None


def is_empty_result(text: str) -> bool:
    """Say whether a result says that there is none."""
    return _EMPTY.fullmatch(text) is not None


def is_refusal(text: str) -> bool:
    """Say whether a short result says that something was not done or is not there."""
    return len(text) <= _ACKNOWLEDGED_CHARACTERS and _REFUSES.search(_NO_REFUSAL.sub("", text)) is not None


def is_acknowledgement(name: str, text: str) -> bool:
    """Say whether a result only tells that the tool did what it is for: `Clicked #next` of `click`."""
    if len(text) > _ACKNOWLEDGED_CHARACTERS or is_refusal(text):
        return False
    said = text.casefold()
    done = (word.removesuffix("e") + "ed" for word in split_words(name).split() if len(word) > 2)
    return _SUCCEEDED.search(said) is not None or any(re.search(rf"\b{one}\b", said) for one in done)


def extract_failure(text: str) -> str:
    """Return what a failure says that is its own: of a traceback, what was raised."""
    raised = _RAISED.findall(text)
    return raised[-1] if raised else text


def mask_volatile(text: str) -> str:
    """Return a text without the times and ids that each call has anew."""
    places = _VOLATILE.findall(text)
    stays = _VOLATILE.sub("·", text) if len(places) <= _FEW else text
    # Who asks for the time gets nothing else.
    return " ".join((stays if re.search(r"\w", stays) else text).split())


def mask_counts(text: str) -> str:
    """Return a short refusal without its numbers, but for those that say how far it is."""
    return text if _COURSE.search(text) or not is_refusal(text) else _COUNT.sub("·", text)


def mask_arguments(text: str, arguments: Mapping[str, Any]) -> str:
    """Return a failure without the arguments that it names: another name that is not there is no news."""
    for value in arguments.values():
        given = str(value)
        if _ECHOED_CHARACTERS <= len(given) <= len(text):
            text = text.replace(given, "·")
    return text


def extract_gist(text: str, arguments: Mapping[str, Any]) -> str:
    """Return what a short result says, "" of longer and of small ones.

    Of a refusal the words of the arguments do not count: that another one is not there is no news.
    """
    if len(text) > SHORT_CHARACTERS or _ANSWER.fullmatch(text):
        return ""
    if not is_refusal(text):
        return mask_volatile(text)
    said = " ".join(map(str, arguments.values())) if arguments else ""
    given = set(_WORD.findall(said.casefold())) if len(said) <= _NAMED_CHARACTERS else set()
    return _WORD.sub(lambda word: "·" if word[0].casefold() in given else word[0], mask_volatile(text))
