"""Finds the tool calls that a model wrote as text: in an envelope, in JSON, or in the form of Python."""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Literal

from maniple.agents.call_envelopes import FIRST_LETTERS, MARKS, read_arguments, read_envelope
from maniple.agents.call_forms import (
    BrokenJson,
    Calls,
    CallSource,
    calls_in_json,
    calls_in_python,
    clean_name,
    is_program,
)

_MAX_PYTHON_TRIES = 3
_PROGRAM_CHARACTERS = 2_000
"""How far before a call in Python's form a program may begin that it is part of."""
_INFO = r"[ \t]*[\w+-]{0,20}[ \t]*"
_TOKEN = re.compile(
    rf"(?=[<\[{{`~]|(?<!\w){FIRST_LETTERS})(?:(?P<mark>{MARKS})"
    rf"|(?P<fence>(?:`{{3,9}}|~{{3,9}})){_INFO}(?:\r?\n)?"
    r"|(?<!`)(?P<inline>`[^`\n]{1,200}`)(?!`)"
    r"|(?P<json>(?:\[\s*)?\{\s*[\"']\w))"
    r"|^[ \t]*(?P<python>\[?(?:\w{1,60}[ \t]?=[ \t]?)?(?:print\()?(?:\w{1,60}\.){0,3}"
    r"(?P<function>\w{2,60})\()"
    r"|^[ \t]*(?:>>>[ \t]*)?(?P<named>(?:\w{1,60}[.:]){0,3}\w{2,60})"
    r"(?=\s*(?:\[(?:ARGS|CALL_ID)\]|(?:```\w*\s*)?\{))",
    re.MULTILINE,
)
_TRAILING = re.compile(r"[\s}\]`~;,]*")
"""What may follow the last call of an answer: closing brackets too many, or a fence."""
_BLANK = re.compile(r"[ \t\r]*")
_BEGIN = re.compile(
    rf"{MARKS}|<[|｜]|<start_function_call>|^[ \t]*(?:(?:```|~~~)\w{{0,20}}\s*)?(?:\[\s*)?\{{\s*[\"']\w",
    re.MULTILINE,
)
"""From here on a streamed text may be a call."""
_MAY_BEGIN = re.compile(
    r"(?:<[^<>\n]{0,140}|\[[A-Za-z_]{0,12}|^[ \t]*(?:(?:`{1,3}|~{1,3})\w{0,20}\s*)?(?:\[\s*)?(?:\{\s*)?[\"']?"
    r"|(?:^[a-z]{1,30} ?|(?<!\w))t?(?:(?<=t)o ?=? ?)?"
    r"|^(?:\*{1,2}|(?:\*\*)?A(?:c(?:t[^\n]{0,140}(?:\n[^\n]{0,24})?)?)?|✿[^\n]{0,140}(?:\n[^\n]{0,20})?))\Z",
    re.MULTILINE,
)
"""The end of a text that the next piece may complete to a beginning."""
_REPAIRED_IN_STREAMS = 4_000
"""Characters of broken JSON that are repaired while a text is streamed: about 20 ms."""
Form = Literal["marked", "fenced", "json", "python", "named"]


@dataclass(frozen=True, slots=True)
class CallBlock:
    """A part of a text that is nothing but calls."""

    calls: Calls
    form: Form
    start: int
    end: int

    def is_of(self, names: Set[str]) -> bool:
        """Return whether all calls are of these tools."""
        return all(one.name in names for one in self.calls)

    @property
    def is_sure(self) -> bool:
        """Whether no other text has the form of one of its calls."""
        return self.form == "marked" or any(one.is_sure or one.is_envelope for one in self.calls)


def find_calls(text: str, names: Set[str] = frozenset()) -> list[CallBlock]:
    """Return all parts of a text that have the form of calls, in their order.

    In Python's form, and as a name before JSON, only calls of the tools in `names` are found, because other
    code looks the same. A repair
    of broken JSON blocks for up to a second: call this in a thread.
    """
    return _CallScanner(CallSource(text, names)).scan() if _TOKEN.search(text) else []


def find_own_calls(text: str, names: Set[str]) -> list[CallBlock]:
    """Return the calls in a text that are meant to be run: those of the tools in `names`.

    An envelope is a call wherever it stands, and so is a JSON call on lines of its own. Code in a fence or
    within a line is a call if the text ends with it, and an example if the text goes on.
    """
    return _choose_meant(text, [one for one in find_calls(text, names) if one.is_of(names)])


def _choose_meant(text: str, own: list[CallBlock]) -> list[CallBlock]:
    if marked := [one for one in own if one.form == "marked"]:
        return marked
    if own and _TRAILING.fullmatch(text, own[-1].end):
        return own
    return [one for one in own if one.form == "json" and _has_own_lines(text, one)]


def find_last_calls(thoughts: str, names: Set[str]) -> list[CallBlock]:
    """Return the calls that end the thoughts before an empty answer: there the model waits for their results.

    What only has the form of a call among other things, and calls that are thought about, are left out.
    """
    last, end = list[CallBlock](), len(thoughts)
    for one in reversed(find_calls(thoughts, names)):
        if not (one.is_sure and one.is_of(names) and _TRAILING.fullmatch(thoughts, one.end, end)):
            break
        last, end = [one, *last], one.start
    return last


def without_blocks(text: str, blocks: Sequence[CallBlock]) -> str:
    """Return the text around the blocks."""
    parts, start = list[str](), 0
    for one in blocks:
        parts.append(text[start : one.start].strip())
        start = one.end
    rest = text[start:]
    parts.append("" if blocks and _TRAILING.fullmatch(rest) else rest.strip())
    return "\n\n".join(part for part in parts if part)


def _has_own_lines(text: str, block: CallBlock) -> bool:
    line = text.rfind("\n", 0, block.start) + 1
    after = _BLANK.match(text, block.end)
    is_last = after is not None and text[after.end() : after.end() + 1] in ("", "\n")
    return is_last and not text[line : block.start].strip() and any(one.is_sure for one in block.calls)


class TextWithoutCalls:
    """Leaves written calls out of a text that is streamed: clients see each as the call that it becomes.

    What follows the beginning of a call is held until the text ends. Only calls of a sure form are left out.
    """

    def __init__(self) -> None:
        self._text = ""
        self._shown = 0
        self._is_holding = False

    def feed(self, piece: str) -> str:
        """Return what can be shown now, perhaps nothing."""
        self._text += piece
        if self._is_holding:
            return ""
        found = _BEGIN.search(self._text, self._shown)
        self._is_holding = found is not None
        if found is None:
            found = _MAY_BEGIN.search(self._text, self._shown)
        return self._show(found.start() if found else len(self._text))

    def end(self) -> str:
        """Return the rest, without calls; the next text begins."""
        text, blocks = self._text, list[CallBlock]()
        if self._is_holding:
            blocks = _CallScanner(CallSource(text, repairable=_REPAIRED_IN_STREAMS)).scan()
        parts = list[str]()
        for one in _choose_meant(text, [one for one in blocks if one.is_sure]):
            parts.append(self._show(one.start))
            self._shown = max(self._shown, one.end)
        rest = self._show(len(text))
        if not (parts and _TRAILING.fullmatch(rest)):
            parts.append(rest)
        self._text, self._shown, self._is_holding = "", 0, False
        return "".join(parts)

    def _show(self, end: int) -> str:
        start, self._shown = self._shown, max(self._shown, end)
        return self._text[start:end]


class _CallScanner:
    """Reads a text once, from its beginning to its end."""

    def __init__(self, source: CallSource) -> None:
        self._source = source
        self._text = source.text
        self._unclosed = set[str]()
        """The fences that are known to have no end in the rest of the text."""
        self._python_tries = 0

    def scan(self) -> list[CallBlock]:
        blocks = list[CallBlock]()
        at = 0
        while found := _TOKEN.search(self._text, at):
            block, at = self._read(found)
            if block is not None:
                blocks.append(block)
        return blocks

    def _read(self, found: re.Match[str]) -> tuple[CallBlock | None, int]:
        """Return the block that begins with a token, if it is one, and where to go on."""
        start = found.start()
        if found["mark"] is not None:
            calls, end = read_envelope(self._source, start)
            return self._block(calls, "marked", start, end, otherwise=found.end())
        if found["fence"]:
            return self._read_fence(found)
        if found["json"]:
            calls, end = self._json_calls(start, len(self._text))
            return self._block(calls, "json", start, end, otherwise=end)
        if found["python"]:
            return self._read_python(found)
        if found["named"]:
            return self._read_named(found)
        return None, found.end()

    def _block(
        self, calls: Calls, form: Form, start: int, end: int, *, otherwise: int
    ) -> tuple[CallBlock | None, int]:
        return (CallBlock(calls, form, start, end), end) if calls else (None, otherwise)

    def _json_calls(self, start: int, limit: int) -> tuple[Calls, int]:
        """Return the calls in the JSON value at `start`, and its end or where it breaks off."""
        try:
            value, end = self._source.json_at(start)
        except BrokenJson as error:
            broken = max(start + 1, error.end)
            value, end = self._source.repaired(start, limit), limit
            if not (calls := calls_in_json(value, self._source.names)):
                return (), broken
            return calls, end
        return calls_in_json(value, self._source.names), end

    def _read_python(self, found: re.Match[str]) -> tuple[CallBlock | None, int]:
        """Read the rest of the text as calls, if it begins with a tool's."""
        inner = found.start("python")
        is_own = clean_name(found["function"], self._source.names) in self._source.names
        if not is_own or self._python_tries == _MAX_PYTHON_TRIES:
            return None, found.end()
        self._python_tries += 1
        before = self._text[max(0, found.start() - _PROGRAM_CHARACTERS) : found.start()]
        if is_program(before.rpartition("\n\n")[2]):
            return None, found.end()
        calls = calls_in_python(self._text[found.start() :], self._source.names)
        return self._block(calls, "python", inner, len(self._text), otherwise=found.end())

    def _read_named(self, found: re.Match[str]) -> tuple[CallBlock | None, int]:
        """Read the JSON after a tool's name."""
        name = clean_name(found["named"], self._source.names)
        is_own = name in self._source.names
        calls, end = read_arguments(self._source, name, found.end()) if is_own else ((), 0)
        return self._block(calls, "named", found.start(), end, otherwise=found.end())

    def _read_fence(self, found: re.Match[str]) -> tuple[CallBlock | None, int]:
        """Read a fenced block that is nothing but calls; other blocks are skipped."""
        mark, start = found["fence"], found.end()
        end, after = self._find_fence_end(mark, start)
        if self._text.startswith(("{", "["), start):
            calls, stop = self._json_calls(start, end)
            closing = re.compile(rf"\s*(?:{mark[0]}{{3,9}})?").match(self._text, stop)
            if calls and closing:
                return CallBlock(calls, "fenced", found.start(), closing.end()), closing.end()
        if after is None:
            return None, start
        calls = _read_whole(self._text[start:end], self._source)
        return self._block(calls, "fenced", found.start(), after, otherwise=after)

    def _find_fence_end(self, mark: str, start: int) -> tuple[int, int | None]:
        """Return the ends of a fence's content and of its closing mark; None for a fence without one."""
        line_end = self._text.find("\n", start)
        in_line = self._text.find(mark, start, line_end if line_end >= 0 else len(self._text))
        if self._text[start - 1 : start] != "\n" and in_line >= 0:
            return in_line, in_line + len(mark)
        if mark not in self._unclosed:
            closing = re.compile(rf"^[ \t]*{mark}[{mark[0]}]*[ \t\r]*$", re.MULTILINE).search(
                self._text, start
            )
            if closing is not None:
                return closing.start(), closing.end()
            self._unclosed.add(mark)
        return len(self._text), None


def _read_whole(text: str, source: CallSource) -> Calls:
    """Return the calls that a text consists of; none if it has anything else."""
    blocks = _CallScanner(source.of_part(text)).scan() if "```" not in text else []
    if blocks and not without_blocks(text, blocks):
        return tuple(call for one in blocks for call in one.calls)
    return calls_in_python(text, source.names) if any(name in text for name in source.names) else ()
