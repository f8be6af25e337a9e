"""The thoughts that models write before their answers, between marks of many kinds."""

import re
import string
from collections.abc import Iterable
from typing import Literal

# Marks are compared in lower case.
_TAGS = (
    *("think", "thinking", "thought", "thoughts", "reasoning", "reflection", "scratchpad", "scratch_pad"),
    *("seed:think", "mm:think", "longcat_think", "|think|", "|thinking|"),
)
_PAIRS: tuple[tuple[str, str], ...] = (
    *((f"<{tag}>", f"</{tag}>" if tag[0] != "|" else f"<|/{tag[1:]}>") for tag in _TAGS),
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|start_thinking|>", "<|end_thinking|>"),
    ("<|channel>thought", "<channel|>"),
    ("<unused94>thought", "<unused95>"),
)
# Harmony (gpt-oss): each message names its channel, and a final message follows any number of others.
_FINAL = "<|channel|>final<|message|>"
_CHANNELS: tuple[tuple[str, str], ...] = (
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("<|channel|>commentary<|message|>", "<|end|>"),
)
# Harmony whose control tokens the server leaves out: "analysisI add.assistantfinal42".
_BARE_ANALYSIS = re.compile(r"analysis(?=[A-Z\"'“*])")
_BARE_FINAL, _BARE_CALL = "assistantfinal", "assistantcommentary"
_OPENINGS: dict[str, str] = dict((*_PAIRS, *_CHANNELS))
# Alone, the end of a message of Harmony says nothing; the beginning of the final one does.
_CLOSINGS = (*(closing for _, closing in _PAIRS), _FINAL, _BARE_FINAL)
_OPENING_OF = {closing: opening for opening, closing in _PAIRS}
_BEFORE_ANSWER = (
    *(
        "<|start|>assistant",
        _FINAL,
        "<|begin_of_solution|>",
        "<|start_response|>",
        "<|begin_of_box|>",
        "<answer>",
    ),
    *("<|im_start|>assistant", "<|start_header_id|>assistant<|end_header_id|>", "<start_of_turn>model"),
)
_AFTER_ANSWER = (
    *("<|return|>", "<|end|>", "<|end_of_solution|>", "<|end_response|>", "<|end_of_box|>", "</answer>"),
)
_ENDS_OF_TURN = (
    *(
        "<|im_end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end_of_text|>",
        "<|endoftext|>",
        "</s>",
        "<|observation|>",
    ),
    *("<end_of_turn>", "<｜end▁of▁sentence｜>", "<|end|>", "<|return|>"),
)
"""With these a model ends its turn, which some servers leave in the text."""


def _any_of(marks: tuple[str, ...]) -> str:
    return "|".join(map(re.escape, marks))


_CLOSING = re.compile(_any_of(_CLOSINGS), re.I)
_LONGEST = max(map(len, _CLOSINGS))
_AFTER = re.compile(_any_of(_AFTER_ANSWER), re.I)
_END_OF_TURN = re.compile(rf"(?:(?:{_any_of(_ENDS_OF_TURN)})\s*+)+\Z", re.I)
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""Unlike `str.lower`, it changes no text's length."""
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.M)
_TAIL_OF_THOUGHT = re.compile(r"(?:\s*<\|(?:end|start)\|>(?:assistant)?)+\s*\Z")

_PLAIN_BEGINNINGS = ("{", "[", "#", "|", "<", "```", "~~~")
"""JSON, headings, tables, markup and code are answers; what begins with words may be a thought."""
_PLAIN_MARKS = tuple(one for one in _PLAIN_BEGINNINGS if len(one) > 1)
MAX_HELD_CHARACTERS = 200_000
"""A closing mark is awaited for so long."""


class ThoughtSplitter:
    """Separates the thoughts at the very beginning of a streamed answer from the rest.

    Thoughts begin with an opening mark, or end with a closing mark alone, whose opening one the template of
    the prompt has written. Later blocks are text, because the answer may be about such blocks, and so are
    marks in code. Characters that may be part of a mark are buffered until the next piece; with
    `awaits_closing` also words that a closing mark may still turn into thoughts.
    """

    def __init__(self, *, awaits_closing: bool = True) -> None:
        self.has_marks: bool | None = None
        """Whether a closing mark came without an opening one; None until that is known."""
        self._awaits_closing = awaits_closing
        self._state: Literal["start", "held", "thought", "gap", "answer"] = "start"
        self._pending = ""
        self._closings: tuple[str, ...] = ()
        self._searched = 0
        self._has_thought = False
        self._is_wrapped = False
        """Whether marks stand around the answer itself."""

    def feed(self, piece: str) -> tuple[str, str]:
        """Add a piece; return the thoughts and the answer text that are known now."""
        if self._state == "answer" and not (self._is_wrapped or self._pending or "<" in piece):
            return "", piece
        self._pending += piece
        thought = ""
        while True:
            state = self._state
            if state == "start":
                self._begin()
            elif state == "held":
                thought += self._search_closing()
            elif state == "thought":
                thought += self._read_thought()
            elif state == "gap":
                self._read_gap()
            if self._state == state:
                return thought, self._read_answer() if state == "answer" else ""

    def end(self, *, is_cut: bool = False) -> tuple[str, str]:
        """End the answer; return the buffered thoughts and answer text.

        With `is_cut`, words that await a closing mark were cut off before it.
        """
        held, self._pending = self._pending, ""
        if self._state == "thought" or (self._state == "held" and is_cut):
            return held, ""
        if self._state == "held":
            self.has_marks = False
        return "", _END_OF_TURN.sub("", held.lstrip() if self._state == "gap" else held)

    @property
    def is_waiting(self) -> bool:
        """Whether words are buffered that a closing mark would turn into thoughts."""
        return self._state == "held"

    def stop_waiting(self) -> None:
        """Take words as the answer from now on, whether or not a closing mark comes."""
        self._awaits_closing = False
        if self._state == "held":
            self._state = "answer"

    def _begin(self) -> None:
        text = self._pending.lstrip()
        folded = text.translate(_LOWER)
        marks = (*_OPENINGS, *_CLOSINGS, *_BEFORE_ANSWER)
        if any(folded.startswith(mark) for mark in marks):
            if found := _mark_of(folded, _CLOSINGS):
                self.has_marks = found != _FINAL
                text = text[0 if found == _FINAL else len(found) :]
            self._state, self._pending = "gap", text
            if found := _mark_of(folded, _OPENINGS):
                self._open(found)
        elif found := _BARE_ANALYSIS.match(text):
            self._state, self._pending, self.has_marks = "thought", text[found.end() :], False
            self._closings = (_BARE_FINAL, _BARE_CALL)
        elif not any(mark.startswith(folded) for mark in (*marks, *_PLAIN_MARKS, "analysis")):
            is_plain = not self._awaits_closing or text.startswith(_PLAIN_BEGINNINGS)
            self._state = "answer" if is_plain else "held"

    def _open(self, opening: str) -> None:
        self._pending = self._pending.lstrip()[len(opening) :]
        self._state, self._closings, self.has_marks = "thought", (_OPENINGS[opening],), False

    def _search_closing(self) -> str:
        for found in _CLOSING.finditer(self._pending, self._searched):
            if found.end() > MAX_HELD_CHARACTERS:
                break
            if self._is_alone(found):
                self._state, self.has_marks = "gap", True
                thought = self._pending[: found.start()].strip()
                is_final = found[0].translate(_LOWER) == _FINAL
                rest = self._pending[found.start() if is_final else found.end() :]
                self._pending = rest
                return _TAIL_OF_THOUGHT.sub("", thought)
        self._searched = max(0, len(self._pending) - _LONGEST)
        if len(self._pending) > MAX_HELD_CHARACTERS + _LONGEST:
            self._state = "answer"
        return ""

    def _is_alone(self, closing: re.Match[str]) -> bool:
        """Return whether a closing mark is neither in code nor the end of a block in the text."""
        before = self._pending[: closing.start()].translate(_LOWER)
        mark = closing[0].translate(_LOWER)
        opening = _OPENING_OF.get(mark)
        if opening and before.count(opening) > before.count(mark):
            return False
        line = before[before.rfind("\n") + 1 :]
        return len(_FENCE.findall(before)) % 2 == 0 and line.count("`") % 2 == 0

    def _read_thought(self) -> str:
        text = self._pending
        folded = text.translate(_LOWER)
        found = {at: mark for mark in self._closings if (at := folded.find(mark)) >= 0}
        if found:
            self._state, end = "gap", min(found)
            # The channel of a call is part of the call.
            rest = text[end + len("assistant" if found[end] == _BARE_CALL else found[end]) :]
        else:
            end = len(text) - _held_for(folded, self._closings)
            rest = text[end:]
        thought = text[:end]
        self._pending = rest
        if not self._has_thought:
            thought = thought.lstrip()
            self._has_thought = bool(thought)
        return thought

    def _read_gap(self) -> None:
        text = self._pending.lstrip()
        folded = text.translate(_LOWER)
        if opening := _mark_of(folded, _OPENINGS):
            self._open(opening)
        elif mark := _mark_of(folded, _BEFORE_ANSWER):
            self._pending, self._is_wrapped = text[len(mark) :], True
            self._read_gap()
        elif text and not any(mark.startswith(folded) for mark in (*_BEFORE_ANSWER, *_OPENINGS)):
            self._state, self._pending = "answer", text

    def _read_answer(self) -> str:
        text, marks = self._pending, _ENDS_OF_TURN
        if self._is_wrapped:
            text, marks = _AFTER.sub("", text), (*_ENDS_OF_TURN, *_AFTER_ANSWER)
        end = len(text) - _held_for(text.translate(_LOWER), marks)
        if ending := _END_OF_TURN.search(text, max(0, text.find("<")), end):
            end = ending.start()
        text, self._pending = text[:end], text[end:]
        return text


def _mark_of(folded: str, marks: Iterable[str]) -> str:
    """Return the mark with which a text begins, "" without one."""
    return next((one for one in marks if folded.startswith(one)), "")


def _held_for(folded: str, marks: tuple[str, ...]) -> int:
    """Return how many characters at the end of a text may begin one of `marks`."""
    longest = max(map(len, marks)) - 1
    for size in range(min(longest, len(folded)), 0, -1):
        if any(len(mark) > size and mark.startswith(folded[-size:]) for mark in marks):
            return size
    return 0


def split_thoughts(text: str) -> tuple[str, str]:
    """Return the thoughts and the answer of a complete text."""
    splitter = ThoughtSplitter()
    (thought, answer), (more_thought, more_answer) = splitter.feed(text), splitter.end()
    return thought + more_thought, answer + more_answer
