"""Text that can be sent, stored and shown: without lone surrogates and thoughts, and in one short line."""

from typing import Any

from maniple.thoughts import split_thoughts

_UNITS = ((1e3, "kB"), (1e6, "MB"), (1e9, "GB"))


def fix_surrogates(value: Any) -> Any:
    """Return `value` with lone surrogates in all of its strings repaired.

    Models and tools may return lone UTF-16 surrogates. Two that form a character are joined; a single one
    becomes U+FFFD.
    """
    if isinstance(value, str):
        return value if value.isascii() else _joined(value)
    if isinstance(value, dict):
        return {fix_surrogates(key): fix_surrogates(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [fix_surrogates(one) for one in value]
    return value


def _joined(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def counted(number: int, noun: str) -> str:
    """Return `1 model call`, `1,204 tokens`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def file_size(size_bytes: int) -> str:
    """Return `1 byte`, `999 bytes`, `2.0 kB`, `1.5 MB`, `3.2 GB`; what rounds to 1,000 gets the next unit."""
    if size_bytes < 1000:
        return counted(size_bytes, "byte")
    unit = next((unit for unit in _UNITS if size_bytes < 999.95 * unit[0]), _UNITS[-1])
    return f"{size_bytes / unit[0]:,.1f} {unit[1]}"


def format_host(host: str) -> str:
    """Return a host as it stands in addresses: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def shorten(text: str, limit: int) -> str:
    """Return a text in one line of at most `limit` characters, with an ellipsis where it is cut."""
    line = _first_line(text, limit)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def shorten_words(text: str, limit: int) -> str:
    """Return what `shorten` does, but cut after a whole word, unless that would leave less than a half."""
    line = _first_line(text, limit)
    kept = line[:limit].rpartition(" ")[0]
    return f"{kept}…" if len(line) > limit <= 2 * len(kept) else shorten(line, limit)


def _first_line(text: str, limit: int) -> str:
    # So many words are too long in any case; a text may have megabytes.
    return " ".join(text.split(maxsplit=limit + 1)[: limit + 1])


def describe_exception(error: BaseException, limit: int) -> str:
    """Return an exception's type and the beginning of its text, in one line.

    The text of somebody else's exception may be of any length, or raise an exception itself.
    """
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - third-party code may fail in any way
        text = "its text cannot be read"
    return shorten(f"{type(error).__name__}: {text}", limit)


def join_title(title: str, text: str) -> str:
    """Return a title with its text below it; the text alone if the title only repeats it or its beginning."""
    head, full = (" ".join(one.casefold().split()).rstrip(" .:") for one in (title, text))
    is_repeated = full == head or (head.endswith("…") and full.startswith(head[:-1]))
    return text if is_repeated and text.strip() else f"{title}\n{text}".rstrip()


def without_thoughts(text: str) -> str:
    """Return an answer without the thoughts that some models put before it."""
    return split_thoughts(text)[1].strip()
