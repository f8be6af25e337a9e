"""Names of files: what is a cache, and what an upload may be called."""

import re
import unicodedata

NAME_BYTES = 200
_ENDS = re.compile(r"\A[\s.]+|[\s.]+\Z")
# Control characters, lone surrogates, and marks that reverse the text direction (`gpj.exe` as `exe.jpg`).
_UNWANTED = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_CACHES = frozenset({"__pycache__", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache"})


def is_cache(path: str) -> bool:
    """Return whether a file is in a cache that a program has made, and so is no work of the team."""
    return not _CACHES.isdisjoint(path.split("/"))


def clean_file_name(name: str) -> str:
    """Return the name of an upload in the workspace: the last part of `name`, visible and without tricks.

    Directories (Windows paths too), control characters, and dots and blanks at both ends are removed; a name
    over 200 bytes is cut before its extension.
    """
    last = _UNWANTED.sub("", name).replace("\\", "/").rstrip("/").rpartition("/")[2]
    clean = _ENDS.sub("", unicodedata.normalize("NFC", last)) or "upload"
    stem, dot, ending = clean.rpartition(".")
    if len(clean.encode()) <= NAME_BYTES:
        return clean
    if not dot or len(ending.encode()) > 20:
        stem, dot, ending = clean, "", ""
    room = NAME_BYTES - len((dot + ending).encode())
    return _ENDS.sub("", stem.encode()[:room].decode(errors="ignore")) + dot + ending
