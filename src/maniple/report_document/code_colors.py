"""The parts of a block of code that are shown in colours of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

CodeKind = Literal["", "comment", "keyword", "name", "number", "string"]
_MAX_BLOCK, _MAX_DOCUMENT = 20_000, 100_000
"""The characters up to which code is coloured."""
_COSTLY = re.compile(r"[^\n]{400}|\n(?:[ \t]{0,400}\n){20}")
"""A long line, or many empty ones: for them, some lexers take more than linear time."""
_LANGUAGES = frozenset(
    (
        *("bash", "sh", "shell", "dockerfile", "ini", "toml", "yaml", "yml", "json", "diff"),
        *("c", "c++", "cpp", "go", "java", "kotlin", "rust", "scala", "swift"),
        *("css", "html", "javascript", "js", "ts", "typescript", "xml", "php"),
        *("lua", "py", "python", "r", "ruby", "sql"),
    )
)
"""The languages that are coloured, by the names that Pygments knows."""


@dataclass(frozen=True, slots=True)
class CodePart:
    """A part of a code's text; its kind is "" without a colour."""

    text: str
    kind: CodeKind = ""


class CodeColorer:
    """Colours the blocks of code of one document, up to a number of characters in total."""

    def __init__(self) -> None:
        self._left = _MAX_DOCUMENT

    def color(self, text: str, language: str) -> list[CodePart]:
        """Return code as parts of which the texts are `text`; one part if its language is not known."""
        if language not in _LANGUAGES or len(text) > min(_MAX_BLOCK, self._left) or _COSTLY.search(text):
            return [CodePart(text)]
        self._left -= len(text)
        parts = list(_read(text, language))
        return parts if "".join(one.text for one in parts) == text else [CodePart(text)]


def _read(text: str, language: str) -> Iterator[CodePart]:
    from pygments.lexers import get_lexer_by_name  # takes memory that a server without reports does not need
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    kinds: list[tuple[object, CodeKind]] = [
        (Comment, "comment"),
        (Keyword, "keyword"),
        (Operator.Word, "keyword"),
        (String, "string"),
        (Number, "number"),
        (Name.Function, "name"),
        (Name.Class, "name"),
        (Name.Tag, "name"),
        (Name.Attribute, "number"),
    ]
    # As the lexer is asked: with blanks at both ends, and without a line feed of its own.
    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    for token, value in lexer.get_tokens(text):
        yield CodePart(value, next((kind for one, kind in kinds if token in one), ""))  # type: ignore[operator]
