"""The calls of a step that succeeded: the evidence for what its answer says."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from maniple.agents.deliverables import find_file_names
from maniple.agents.hand_work import HandWork
from maniple.agents.tool_observations import PROGRAM_ARGUMENTS, split_words
from maniple.tools.web import SEARCHES

_EDITS = re.compile(r"\bedit(?:or)?\b")
_RUNS = re.compile(
    r"\b(?:python|bash|shell|terminal|console|exec\w*|run\w*|repl|script|jupyter|notebook|kernel|test\w*)\b"
)
"""Words in the names of tools that run programs."""
_READS = re.compile(
    r"\b(?:read|get|list|search|find|fetch|open|look|lookup|view|show|query|crawl|scrape|browse|describe|count"
    r"|check|tree|weather|info|status|time|think\w*)\b"
)
"""Words in the names of tools that only read."""
_FILE_TOOLS = frozenset({"move_file", "copy_file", "file_operations", "undo_file_operations", "write_file"})
_FILE_EDITORS = frozenset({"write_file", "str_replace_editor"})
"""Tools that write any text, such as a drawing in SVG."""
_COMMANDS = ("cmd", "command")
"""Arguments that contain a command of a shell."""
COMMAND_END = re.compile(r"\n|;|&&|\|\|?")
"""Ends one command of several in a program or a line of a shell."""
_MAY_RUN = re.compile(r"[<>`]|\$\(|-exec\b|-delete\b|\bxargs\b")
_SHOWING = frozenset(
    {"cat", "head", "tail", "less", "more", "nl", "ls", "tree", "find", "wc", "grep", "rg", "file", "stat"}
    | {"pwd", "cd", "echo", "printf", "du", "df", "diff", "cmp", "which", "sort", "uniq", "cut", "date"}
)
"""Commands of a shell that only show something."""
_NO_CONTENT = frozenset({"delete_file", "create_directory"})
_SEARCHES_FILES = re.compile(r"\b(?:search (?:files|items)|grep|glob)\b")
_SCHEME = re.compile(r"\Ahttps?://(?:www\.)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DoneCall:
    """A call that succeeded: what ran, and what it returned."""

    name: str
    arguments: Mapping[str, Any]
    """Those that it ran with, which the user may have changed."""
    result: str
    written: Mapping[str, Any]
    """The arguments as the model wrote them."""
    only_reads: bool = False
    """Whether its tool declares so."""

    def programs(self) -> list[str]:
        """Return the arguments that contain a program or a command."""
        return [value for key, value in self.arguments.items() if key in PROGRAM_ARGUMENTS and value]

    @property
    def only_shows(self) -> bool:
        """Whether its commands show files or text, and nothing else."""
        commands = [value for key in _COMMANDS if isinstance(value := self.arguments.get(key), str)]
        return bool(commands) and all(_only_shows(one) for one in commands)

    @property
    def runs_programs(self) -> bool:
        """Whether it ran a program, which may do anything and compute the names of what it reads."""
        name = split_words(self.name)
        if _EDITS.search(name) or self.only_shows:
            return False
        return bool(self.programs()) or _RUNS.search(name) is not None

    def may_have_done(self, work: HandWork) -> bool:
        """Return whether it can have done a kind of work; a tool that is not known may do anything.

        Tools that only read, by what they declare or by their names, do none.
        """
        if self.runs_programs:
            return True
        is_view = self.arguments.get("command") == "view" or self.only_shows
        if self.only_reads or is_view or _READS.search(split_words(self.name)):
            return False
        if self.name in SEARCHES or self.name in _NO_CONTENT:
            return False
        if self.name in _FILE_TOOLS | _FILE_EDITORS:
            return work == "saves" or (work == "draws" and self.name in _FILE_EDITORS)
        return True

    @property
    def text(self) -> str:
        """All that it was given and returned."""
        return f"{json.dumps(dict(self.arguments), ensure_ascii=False, default=str)}\n{self.result}"


def _only_shows(command: str) -> bool:
    if _MAY_RUN.search(command):
        return False
    parts = (one.split() for one in COMMAND_END.split(command))
    return all(words[0] in _SHOWING for words in parts if words)


def shows_address(calls: Sequence[DoneCall], address: str) -> bool:
    """Return whether a call was given an address or returned it, in any of its usual forms."""
    return names_address("\n".join(one.text for one in calls), address)


def names_address(text: str, address: str) -> bool:
    """Return whether a text has an address, or one below it, with any scheme, `www.` and fragment."""
    own = re.escape(unquote(_SCHEME.sub("", address).partition("#")[0].rstrip("/")).casefold())
    return re.search(rf"(?:(?<![\w.-])|(?<=www\.)){own}(?![\w-]|\.\w)", unquote(text).casefold()) is not None


def shows_file(calls: Sequence[DoneCall], name: str, paths: Collection[str]) -> bool:
    """Return whether a call named a file, searched in all, or was given a folder of one of its `paths`."""
    text = "\n".join(one.text for one in calls).casefold()
    own = re.escape(name.casefold().rpartition("/")[2])
    if re.search(rf"(?<![a-z0-9_-]){own}(?![a-z0-9_-])", text):
        return True
    if any(_SEARCHES_FILES.search(split_words(one.name)) and not _names_files(one) for one in calls):
        return True
    folders = {path[:at] for path in paths for at, sign in enumerate(path) if sign == "/"}
    return any(f'"{end}{one}{end}"'.casefold() in text for one in folders for end in ("", "/"))


def _names_files(call: DoneCall) -> bool:
    return bool(find_file_names(" ".join(str(one) for one in call.arguments.values())))
