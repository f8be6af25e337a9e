"""What a person decides on, with code, data and diffs highlighted on a terminal.

The text is always that of `run_text.describe_question`: colours add nothing and leave nothing out.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rich.syntax import Syntax
from rich.text import Text

from maniple.cli.render.run_text import BLOCK_MARK, argument_texts, describe_question, question_kind
from maniple.events import RunInterrupted

_MOST_CHARACTERS = 50_000
"""A longer argument is printed without colours: finding them would take long."""
_DIFF = re.compile(r"^(?:diff --git |--- \S.*\n\+\+\+ |@@ -\d|\*\*\* (?:Begin|Update|Add) )", re.MULTILINE)
_COMMANDS = ("cmd", "command", "script", "shell")
_CONTENTS = ("content", "contents", "text", "file_text", "new_text", "new_string", "old_text", "old_string")
_PATHS = ("path", "file_path", "filename", "file", "name")
_THEME = "ansi_dark"


def style_question(question: RunInterrupted) -> Text:
    """Return `describe_question(question)` with the arguments of a call highlighted by their languages."""
    plain = describe_question(question)
    arguments = question.payload.get("tool_input")
    if question_kind(question) not in ("approval", "unknown_result") or not arguments:
        return Text(plain)
    tool_name = str(question.payload.get("tool_name", ""))
    lines = [line for name in arguments for line in _argument_lines(tool_name, name, arguments)]
    head, *rest = plain.split("\n")
    shown = Text("\n").join([Text(head), *lines, *map(Text, rest[len(lines) :])])
    return shown if shown.plain == plain else Text(plain)


def _argument_lines(tool_name: str, name: str, arguments: Mapping[str, Any]) -> Iterator[Text]:
    heading, text = argument_texts(name, arguments[name])
    shown = highlight(text, language_of(tool_name, name, arguments))
    if "\n" not in text:
        yield Text(f"{heading} ").append_text(shown)
        return
    yield Text(heading)
    for line in shown.split("\n", allow_blank=True):
        yield Text(BLOCK_MARK).append_text(line)


def language_of(tool_name: str, name: str, arguments: Mapping[str, Any]) -> str:
    """Return the name of the lexer for an argument of a tool call; "" if nothing says its language."""
    value = arguments[name]
    if not isinstance(value, str):
        return "json" if isinstance(value, dict | list) else ""
    if _DIFF.search(value):
        return "diff"
    if name in _COMMANDS:
        return "bash"
    if name in ("code", "source") and "python" in tool_name:
        return "python"
    if name == "code" and isinstance(language := arguments.get("language"), str):
        return language.casefold()
    if name in _CONTENTS:
        path = next((arguments[one] for one in _PATHS if isinstance(arguments.get(one), str)), "")
        return _language_of_file(path) if path else ""
    return "json" if _is_json(value) else ""


def highlight(text: str, language: str) -> Text:
    """Return `text` with the colours of a language; without any if the lexer would change the text."""
    shown = Text(text)
    if not language or len(text) > _MOST_CHARACTERS:
        return shown
    found = Syntax("", language, theme=_THEME).highlight(text)
    if found.plain.rstrip("\n") == text.rstrip("\n"):
        shown.spans = [span for span in found.spans if span.start < len(text)]
    return shown


def _language_of_file(path: str) -> str:
    language = Syntax.guess_lexer(path)
    return "" if language in ("default", "text") else language


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
