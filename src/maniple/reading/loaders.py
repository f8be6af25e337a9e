"""Loaders of LangChain as readers of documents, for the types of files that the settings name.

A loader is a class that takes the path of a file and has `lazy_load`, as `BaseLoader` has. It is imported and
runs only in a reader's process (`maniple.reading.fork_server_process`): in its limits of time and memory,
where it can write no file and has no environment variables.
"""

import importlib
import re
from asyncio import CancelledError
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from maniple.reading import MAX_TEXT_CHARACTERS, MarkdownDocument, UnreadableDocument, truncation_note
from maniple.text import describe_exception, fix_surrogates, shorten

LOADER = "loader"
"""The `kind` of a request to a reader's process for a loader."""
_HTML_TYPES = ("text/html", "application/xhtml+xml")
_HTML_SUFFIXES = (".html", ".htm", ".xhtml")
_SUFFIX = re.compile(r"\.[a-z0-9]{1,20}")
_REASON_CHARACTERS = 200
_ODD_ERRORS = (SystemExit, KeyboardInterrupt, GeneratorExit, CancelledError)
"""What is no `Exception`, and would end the process without a word."""


@dataclass(frozen=True, slots=True)
class DocumentLoader:
    """A loader's class, and the arguments that it gets beside the path."""

    use: str
    """`module:Class`"""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Values of JSON."""


@dataclass(frozen=True, slots=True)
class DocumentLoaders:
    """The loaders by suffix (`.srt`) and by media type (`application/epub+zip`), in lower case."""

    by_type: Mapping[str, DocumentLoader] = field(default_factory=dict)

    def find(self, name: str, media_type: str) -> DocumentLoader | None:
        """Return the loader for a file or an address; None where it is left to maniple's own readers.

        A web page is not the file that its address is named after: only its media type counts.
        """
        if not self.by_type:
            return None
        suffix = suffix_of(name)
        is_page = media_type in _HTML_TYPES and suffix not in _HTML_SUFFIXES
        return self.by_type.get(media_type) or (None if is_page else self.by_type.get(suffix))


def suffix_of(name: str) -> str:
    """Return the last suffix of a path or an address with its full stop, in lower case; "" for none."""
    suffix = PurePosixPath(urlsplit(name).path if "://" in name else name).suffix.lower()
    return suffix if _SUFFIX.fullmatch(suffix) else ""


def import_loader(use: str) -> Any:
    """Return the class; raises whatever its import raises, and `TypeError` for what is no loader."""
    module, _, name = use.partition(":")
    found = getattr(importlib.import_module(module), name)
    if not callable(getattr(found, "lazy_load", None)):
        raise TypeError(f"{use} is no BaseLoader of LangChain")
    return found


def load_document(use: str, options: Mapping[str, Any], path: str) -> MarkdownDocument:
    """Return the text of the file at `path` as the loader reads it. Blocks; for a reader's process.

    Raises:
        UnreadableDocument: the loader cannot be imported or fails.
    """
    try:
        loaded = import_loader(use)(path, **options).lazy_load()
        return _join(loaded)
    except MemoryError:
        raise
    except (Exception, *_ODD_ERRORS) as error:  # third-party code may fail in any way
        reason = describe_exception(error, _REASON_CHARACTERS)
        raise UnreadableDocument(f"cannot be read with {use} ({reason})") from error


def _join(documents: Iterator[Any]) -> MarkdownDocument:
    title, texts, characters = "", list[str](), 0
    for document in documents:
        text = fix_surrogates(str(document.page_content)).replace("\0", "").strip()
        title = title or str(document.metadata.get("title") or "")
        texts.append(text)
        characters += len(text) + 2
        if characters > MAX_TEXT_CHARACTERS:
            break
    whole = "\n\n".join(filter(None, texts))
    note = truncation_note(MAX_TEXT_CHARACTERS) if len(whole) > MAX_TEXT_CHARACTERS else ""
    return MarkdownDocument(
        shorten(fix_surrogates(title), _REASON_CHARACTERS), whole[:MAX_TEXT_CHARACTERS], False, note
    )
