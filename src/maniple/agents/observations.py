"""What of a tool call and its result makes it the same as another one, whatever their wording."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LONG_CHARACTERS = 80
"""From here on, the same result of two different calls is no coincidence."""
_FEW = 2
"""So many times and ids in a result are those of the call; more of them are what it found."""
_ECHOED_CHARACTERS = 3
_SENTENCE_CHARACTERS = 10
_SAYING_CHARACTERS = 10
"""A call that is longer than its sentence by more than this does more than to say it."""
_LOOKED_THROUGH_CHARACTERS = 50_000
_VOLATILE = re.compile(
    r"""\[took\ [\d.]+\ s\]
    | \b\d{4}-\d\d-\d\d[T\ ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?
    | \b\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?\b
    | \b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b
    | \b0x[0-9a-f]{6,16}\b
    | \b(?:took|in|after|elapsed|duration)[\ :=]{1,3}[\d.,]{1,12}\ ?(?:ms|µs|us|s|secs?|seconds?)\b
    | \b(?:request|trace|session|correlation)[-_\ ]?id["':=\ ]{1,4}[\w-]{6,64}
    | \b(?:timestamp|epoch)["':=\ ]{1,4}\d{10,13}(?:\.\d{1,9})?""",
    re.I | re.X,
)
_RAISED = re.compile(r"^[\w.]{1,100}(?:Error|Exception|Exit|Interrupt)\b.*", re.M)
_CODE_FAILED = re.compile(r"\[exit code [1-9]|\[timeout: stopped after")
_EMPTY = re.compile(
    r"\W*|null|none"
    r"|no (?:\w+ )?(?:results?|match(?:es)?|hits?|entries|documents?|pages?)(?: (?:were )?found)?\W*"
    r"|\W?(?:nothing|0 results?|0 matches|0 hits)(?: (?:was |were )?found)?\b.{0,80}",
    re.I | re.S,
)
_ACTS = re.compile(
    r"(?<![a-z])(?:add|bash|click|copy|create|delete|edit|exec\w*|fill|insert|make|move|post|press|put|python"
    r"|remove|run|save|send|set|shell|store|submit|type|update|upload|write)(?![a-z])"
)
_PROGRAM = frozenset({"code", "cmd", "command", "script"})
"""Arguments that hold a program."""
_COMMENT = re.compile(r"(?:^|(?<=\s))#[^'\"\n]{0,200}$", re.M)
_ANCHOR = re.compile(r"\A(https?://[^\s#]+)#(?![/!])\S*\Z", re.I)
"""Part of a page; what begins with a slash or an exclamation mark is a page of its own."""
_WAITING_TOOL = re.compile(r"(?<![a-z])(?:sleep|wait|poll|status|progress)(?![a-z])")
_WAITING_ARGUMENT = re.compile(r"(?<![a-z])(?:sleep|wait)(?![a-z])")
_WAITING_RESULT = re.compile(
    r"\b(?:pending|queued|in[ _-]progress|running|processing|loading|not (?:yet )?ready|waiting)\b", re.I
)


@dataclass(frozen=True, slots=True)
class Observed:
    """A tool call, and the text that came of it."""

    name: str
    arguments: Mapping[str, Any]
    result: str
    is_error: bool = False

    @property
    def call(self) -> str:
        """What this call has in common with those that ask for the same."""
        return f"{self.name} {json.dumps(_plain(self.arguments), sort_keys=True, default=str)}"

    @property
    def failed(self) -> bool:
        """Whether it failed, be it as a call or as a program."""
        return self.is_error or _CODE_FAILED.search(self.result) is not None

    def found(self) -> frozenset[str]:
        """Return what the result says, a digest for each thing that counts by itself.

        Of a list of hits these are the addresses; of code that raised, what it raised; of a sentence that the
        call was given and that comes back, none; else it is one text.
        Times and ids that each call has anew do not count, nor does what a failure repeats of the arguments.
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
            raised = _RAISED.findall(text)
            text = _without_echo(raised[-1] if raised else text, self.arguments)
        return frozenset({_digest(_steady(text))})

    def could_be_known(self) -> bool:
        """Say whether a result that was seen before teaches nothing, although the call is a new one.

        The words with which a tool confirms that it did something are always the same.
        """
        if self.failed or self._only_repeats():
            return True
        if _ACTS.search(self.name.casefold()):
            return False
        if len(self.result) < LONG_CHARACTERS and not _addresses(self.result):
            return _EMPTY.fullmatch(self.result) is not None
        return True

    def _only_repeats(self) -> bool:
        """Say whether the call did no more than say a sentence, as `echo` does."""
        text, given = self.result.strip(), [value for value in self.arguments.values() if value is not None]
        if len(given) != 1 or not isinstance(given[0], str):
            return False
        is_sentence = len(text) >= _SENTENCE_CHARACTERS and " " in text
        return is_sentence and text in given[0] and len(given[0]) <= len(text) + _SAYING_CHARACTERS

    def waits(self) -> bool:
        """Say whether it looks after something that takes its time."""
        if _WAITING_TOOL.search(self.name.casefold()):
            return True
        if len(self.result) <= LONG_CHARACTERS and _WAITING_RESULT.search(self.result):
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


def _without_echo(text: str, arguments: Mapping[str, Any]) -> str:
    """Return a failure without the arguments that it names: another name that is not there is no news."""
    for value in arguments.values():
        given = str(value)
        if _ECHOED_CHARACTERS <= len(given) <= len(text):
            text = text.replace(given, "·")
    return text


def _steady(text: str) -> str:
    places = _VOLATILE.findall(text)
    steady = _VOLATILE.sub("·", text) if len(places) <= _FEW else text
    # Who asks for the time gets nothing else.
    return " ".join((steady if re.search(r"\w", steady) else text).split())


def _digest(text: str) -> str:
    return hashlib.blake2s(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
