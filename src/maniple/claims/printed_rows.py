"""Lays out what a program has printed, so that each record is a row of a table, or a line of its own.

Figures are then compared within their rows, as in the tables of sources: JSON, the literals of Python,
records in blocks of lines, and rows that stand on one line.
"""

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeGuard

MAX_CHARACTERS = 400_000
"""Characters of an output that are laid out; a longer one stays as it is."""
MAX_LITERAL = 20_000
"""Characters of a literal of Python that are read."""
MAX_ATTEMPTS = 20
"""Brackets of an output at which no value begins, until no further ones are tried."""
MAX_DEPTH = 4
MAX_COLUMNS = 40
LEAST_ROWS = 2
_BRACKET = re.compile(r"(?:^|(?<=[:=\s]))[\[{(]", re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.])[-+−]?\d[\d.,_]*(?:e[-+]?\d+)?", re.IGNORECASE)
_INDENT = re.compile(r"[ \t]*(?:- )?")
_FIELD = re.compile(r"\s*[^\W\d_][^:=]{0,60}[:=]\s*\S")
_KEYED = re.compile(r"\s*[^\d\W][^:=,;]{0,80}[:=]\s*[^\s:=,;]{1,40}(?:\s[^\s\d:=,;]{1,20})?\s*")
_HEADED = re.compile(r"\s*[^\W\d_]")
PrintedValue = tuple[int, int, object]
"""A value with the place where it begins and ends."""


def lay_out(text: str) -> str:
    """Return an output with a row for each record. Text that has no records stays as it is."""
    if len(text) > MAX_CHARACTERS:
        return text
    pieces, at = list[str](), 0
    for start, end, value in _join_records(text, _find_values(text)):
        pieces += [_lay_out_lines(text[at:start]), *_describe_value(value)]
        at = end
    rest = _lay_out_lines(text[at:])
    return "\n\n".join(filter(str.strip, (*pieces, rest))) if pieces else rest


def _join_records(text: str, values: Iterator[PrintedValue]) -> Iterator[PrintedValue]:
    """Yield values; objects on lines that follow each other, alone or behind a label, become one list."""
    run = list[tuple[PrintedValue, str]]()
    for value in values:
        start, _, found = value
        begin = text.rfind("\n", 0, start) + 1
        label = text[begin:start].strip(" \t:=-")
        if run and not (
            _is_record(found)
            and _is_record(run[-1][0][2])
            and not text[run[-1][0][1] : begin].strip(" \t\r\n,")
            and bool(label) == bool(run[-1][1])
        ):
            yield from _close_run(text, run)
            run = []
        run.append((value, label))
    yield from _close_run(text, run)


def _close_run(text: str, run: Sequence[tuple[PrintedValue, str]]) -> Iterator[PrintedValue]:
    if len(run) < LEAST_ROWS:
        yield from (value for value, _ in run)
        return
    (start, *_), label = run[0]
    records = [{"": name, **_flatten(one)} if name else _flatten(one) for (*_, one), name in run]
    yield text.rfind("\n", 0, start) + 1 if label else start, run[-1][0][1], records


def _find_values(text: str) -> Iterator[PrintedValue]:
    """Yield the lists and objects with records, each with its place."""
    decoder, at, failed = json.JSONDecoder(), 0, 0
    while failed < MAX_ATTEMPTS and (found := _BRACKET.search(text, at)):
        start = found.start()
        end, value = _read_value(decoder, text, start)
        if value is None:
            at, failed = start + 1, failed + 1
            continue
        at = end
        if next(_describe_value(value), None):
            yield start, end, value


def _read_value(decoder: json.JSONDecoder, text: str, start: int) -> tuple[int, object]:
    """Return the value that begins at `start`, and its end; None if there is none."""
    if text[start] != "(":
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            pass
        else:
            return end, value
    line_end = text.find("\n", start)
    for end in dict.fromkeys((line_end if line_end >= 0 else len(text), len(text.rstrip()))):
        if end - start > MAX_LITERAL:
            continue
        try:
            return end, ast.literal_eval(text[start:end].strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return start, None


def _describe_value(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the records of a value as tables, or as lines of a name and its figure."""
    if depth > MAX_DEPTH:
        return
    if _is_record(value):
        yield from _describe_mapping({str(key): one for key, one in value.items()}, depth)
    elif _is_list(value) and value:
        rows = [*value]
        if all(map(_is_record, rows)):
            yield from _describe_records([_flatten(one) for one in rows])
        elif all(map(_is_list, rows)):
            yield from _describe_rows([[*one] for one in rows if _is_list(one)])
        else:
            for one in rows:
                if not _is_scalar(one):
                    yield from _describe_value(one, depth + 1)


def _describe_mapping(value: Mapping[str, object], depth: int) -> Iterator[str]:
    values = [*value.values()]
    if len(values) >= LEAST_ROWS and all(map(_is_record, values)):
        yield from _describe_records([{"": key, **_flatten(one)} for key, one in value.items()])
        return
    if _is_by_column(values):
        columns = zip(*filter(_is_list, values), strict=True)
        yield from _describe_records([dict(zip(value, row, strict=True)) for row in columns])
        return
    scalars = {key: one for key, one in value.items() if _is_scalar(one)}
    if scalars:
        yield "\n\n".join(f"{key}: {_show(one)}" for key, one in scalars.items())
    for key, one in value.items():
        if key not in scalars:
            described = [*_describe_value(one, depth + 1)]
            yield from [f"## {key}", *described] if described else [f"{key}: {_show(one)}"]


def _is_by_column(values: Sequence[object]) -> bool:
    """Whether an object has lists of one length, such as the columns of a table."""
    lists = [one for one in values if _is_list(one) and all(map(_is_scalar, one))]
    return len(lists) == len(values) >= 2 and len({*map(len, lists)}) == 1 and len(lists[0]) >= LEAST_ROWS


def _flatten(record: object) -> dict[str, object]:
    """Return the fields of a record, with those of the objects in it."""
    found = dict[str, object]()
    for key, one in record.items() if _is_record(record) else ():
        if _is_record(one):
            found |= {f"{key} {inner}": each for inner, each in one.items()}
        else:
            found[str(key)] = one
    return found


def _describe_records(records: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield a table of records; the first field with words heads the rows."""
    names = [*dict.fromkeys(key for one in records for key in one)][:MAX_COLUMNS]
    if not names:
        return
    head = next((name for name in names if all(isinstance(one.get(name), str) for one in records)), names[0])
    names = [head, *(name for name in names if name != head)]
    yield _write_table(names, ([one.get(name, "") for name in names] for one in records))


def _describe_rows(rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """Yield a table of rows; without a head, a line for each row."""
    if not all(rows) or len(rows) < LEAST_ROWS:
        return
    if all(isinstance(one, str) for one in rows[0]) and any(
        not isinstance(one, str) for row in rows[1:] for one in row
    ):
        yield _write_table([*map(str, rows[0])][:MAX_COLUMNS], (row[:MAX_COLUMNS] for row in rows[1:]))
    elif any(isinstance(one, str) for row in rows for one in row):
        yield "\n\n".join("  ".join(map(_show, row)) for row in rows)


def _write_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [
        [one.replace("_", " ") for one in head],
        ["---"] * len(head),
        *([*map(_show, row)] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _is_record(value: object) -> TypeGuard[Mapping[object, object]]:
    return isinstance(value, Mapping)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _show(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return " ".join(text.replace("|", "/").split())


def _lay_out_lines(text: str) -> str:
    """Return lines with the records in blocks on one line each, and rows on lines of their own."""
    lines = [part for line in _join_blocks(text.split("\n")) for part in _split_rows(line)]
    found = list[str]()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        found.append(line)
        if _has_shape_of(line, following):
            found.append("")  # else they may be read as one wrapped line
    return "\n".join(found)


def _join_blocks(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines; fields that are indented below a line are joined with it, if several blocks are alike."""
    blocks = list[list[str]]()
    for line in lines:
        is_field = bool(blocks) and _indent_of(line) > _indent_of(blocks[-1][0]) and _FIELD.match(line)
        if is_field and blocks[-1][0].strip():
            blocks[-1].append(line)
        else:
            blocks.append([line])
    records = sum(len(block) > 1 for block in blocks)
    for block in blocks:
        if records >= LEAST_ROWS and len(block) > 1:
            yield from (", ".join(one.strip(" \t-,") for one in block), "")
        else:
            yield from block


def _indent_of(line: str) -> int:
    """Return the width of a line's indent, with that of a bullet's mark less one."""
    found = _INDENT.match(line)
    width = found.end() if found else 0
    return width - 2 if found and found[0].endswith("- ") else width


def _split_rows(line: str) -> Iterator[str]:
    """Yield the rows that stand on one line; a line that is none of several rows as it is."""
    if "|" in line and line.lstrip().startswith("|"):
        yield line
        return
    for mark in (";", " | ", ","):
        parts = [part for part in line.split(mark) if part.strip()]
        if len(parts) >= LEAST_ROWS and _are_rows(parts, is_keyed=mark == ","):
            yield from (row for part in parts for row in (part.strip(), ""))
            return
    yield line


def _are_rows(parts: Sequence[str], *, is_keyed: bool) -> bool:
    """Whether parts of a line have a head, and figures of one shape behind it."""
    if is_keyed and not all(map(_KEYED.fullmatch, parts)):
        return False
    return all(map(_HEADED.match, parts)) and all(_has_shape_of(one, other) for one, other in pairwise(parts))


def _has_shape_of(one: str, other: str) -> bool:
    """Whether two lines have the same text from the first figure on, but for the figures."""
    first, second = _read_shape(one), _read_shape(other)
    return bool(first) and first == second


def _read_shape(line: str) -> str:
    found = _NUMBER.search(line)
    return _NUMBER.sub("#", line[found.start() :]).strip() if found else ""
