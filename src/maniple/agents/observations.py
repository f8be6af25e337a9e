"""What of a tool call and its result makes it the same as another one, whatever their wording."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maniple.agents import result_words as words

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
class Observed:
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
        return self.is_error or words.program_failed(self.result)

    @property
    def acts(self) -> bool:
        """Whether it changes something, as far as can be told."""
        return not self.only_reads and words.changes_something(self.name, self.arguments)

    @property
    def is_blind(self) -> bool:
        """Whether it acts and does not tell what came of it: the same call may be the next one of many."""
        return self.acts and not self.failed and words.acknowledges(self.name, self.result)

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
            text = words.without_echo(words.failure(text), self.arguments)
        text = words.steady(text)
        return frozenset({_digest(text if self.waits() else words.without_counts(text))})

    def could_be_known(self) -> bool:
        """Say whether a result that was seen before teaches nothing, although the call is a new one.

        The words with which a tool confirms that it did something are always the same.
        """
        if self.failed or self._only_repeats():
            return True
        if self.acts or (not self.only_reads and words.acknowledges(self.name, self.result)):
            return False
        if len(self.result) < words.SHORT_CHARACTERS and not _addresses(self.result):
            return words.is_empty(self.result)
        return True

    def gist(self) -> str:
        """Return what a short result says beside the words of the call, if that could say nothing; else "".

        Whatever its language: who is told the same whatever the arguments may be none the wiser.
        """
        if _addresses(self.result):
            return ""
        told = words.refuses(self.result) if self.acts else not words.acknowledges(self.name, self.result)
        return words.gist(self.result, self.arguments) if told else ""

    def _only_repeats(self) -> bool:
        """Say whether the call did no more than say a sentence, as `echo` does."""
        text, given = self.result.strip(), [value for value in self.arguments.values() if value is not None]
        if len(given) != 1 or not isinstance(given[0], str):
            return False
        is_sentence = len(text) >= _SENTENCE_CHARACTERS and " " in text
        return is_sentence and text in given[0] and len(given[0]) <= len(text) + _SAYING_CHARACTERS

    def waits(self) -> bool:
        """Say whether it looks after something that takes its time."""
        if _WAITING_TOOL.search(words.words_of(self.name)):
            return True
        if len(self.result) <= words.SHORT_CHARACTERS and _WAITING_RESULT.search(self.result):
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
