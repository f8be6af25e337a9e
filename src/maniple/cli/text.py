"""Text for the terminal: formats that all views share, and untrusted text made safe to print."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from maniple.text import counted

if TYPE_CHECKING:
    from maniple.events import BrowserStepChanged, ClaimsChecked, ClaimView, Event
    from maniple.evidence import Source

_EXCEPTION = re.compile(r"[\w.]*(?:Error|Exception|Exit|Interrupt|Iteration|Warning)\b")


def duration(seconds: float) -> str:
    """Return `0.2 s`, `21 s`, `3 min 05 s`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def time_ago(seconds: float) -> str:
    """Return `just now`, `5 min ago`, `3 h ago`, `12 days ago`."""
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min ago"
    if seconds < 2 * 86400:
        return f"{seconds // 3600:.0f} h ago"
    return f"{seconds // 86400:.0f} days ago"


def one_line(text: str, longest: int = 400) -> str:
    """Return the text in one line, without blank lines, cut with an ellipsis at `longest` characters."""
    lines = (" ".join(line.split()) for line in text[: 4 * longest].splitlines())
    line = " ⏎ ".join(part for part in lines if part)
    return line if len(line) <= longest else line[: longest - 1] + "…"


def result_line(text: str, longest: int = 400) -> str:
    """Return a tool's result in one line; for a Python traceback, its last error."""
    lines = text.splitlines()
    if any(line.startswith("Traceback (most recent call last)") for line in lines):
        errors = [line for line in lines if _EXCEPTION.match(line)]
        text = errors[-1] if errors else text
    return one_line(text, longest) or "(no output)"


def result_lines(text: str) -> list[str]:
    """Return a tool's result in at most `_RESULT_LINES` lines and a line about the rest, as people read it.

    Search hits and pages are named, other JSON is shown by its fields. For a Python traceback, its last
    error. The exit code is left out (see `failure_mark`). The lines are safe to print.
    """
    # Not before: a JSON text may hold control characters as escape sequences.
    return [one_line(clean(line)) or "(no output)" for line in _describe_result(drop_exit_code(text))]


def failure_mark(result: str) -> str:
    """Return `✘ exit code 2` or `✘ timeout` for the result of a command that failed, else "".

    The sandbox writes such a note below the output. Only the last lines are read, because a page that a tool
    has read may hold anything.
    """
    last_lines = "\n".join(result.rsplit("\n", _NOTE_LINES)[-_NOTE_LINES:])
    if found := _EXIT_CODE.search(last_lines):
        return f"✘ exit code {found[1]}"
    return "✘ timeout" if _TIMEOUT.search(last_lines) else ""


def drop_exit_code(result: str) -> str:
    """Return a result without the line about the exit code, which `failure_mark` shows."""
    head, *last_lines = result.rsplit("\n", _NOTE_LINES)
    kept = [line for line in (head, *last_lines) if not _EXIT_CODE.fullmatch(line)]
    return "\n".join(kept)


def table_lines(rows: Sequence[Sequence[str]], right_from: int | None = None) -> list[str]:
    """Return the rows as lines with aligned columns, by the width of the characters on a terminal.

    Columns from the index `right_from` on are aligned to the right. All rows have the same length.
    """
    widths = [max(cell_len(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
    lines: list[str] = []
    for row in rows:
        cells: list[str] = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            blank = " " * (width - cell_len(cell))
            is_right = right_from is not None and column >= right_from
            cells.append(f"{blank}{cell}" if is_right else f"{cell}{blank}")
        lines.append("  ".join(cells).rstrip())
    return lines


def _describe_result(text: str) -> list[str]:
    if found := _PAGE.match(text):
        title, cite, url = found.groups()
        source = _source_line({"title": title, "cite": cite, "url": url})
        return [f"{source}, {counted(len(text) - found.end(), 'character')}"]
    value = _read_json(text) if text.lstrip()[:1] in ("[", "{") else None
    if isinstance(value, list):
        return _list_lines(value)
    if isinstance(value, dict):
        if isinstance(content := value.get("result_content"), str):  # of the browser
            return _describe_result(content)
        return _first_lines([f"{name}: {_as_text(one)}" for name, one in value.items()], "field")
    if any(line.startswith("Traceback (most recent call last)") for line in text.splitlines()):
        return [result_line(text)]
    lines = [line for line in text.splitlines() if line.strip()]
    if lines[1:] and lines[0] == _STDERR_HEAD:  # the error itself says more
        del lines[0]
    shown = _first_lines(lines, "line")
    return [*shown, *(line for line in lines[_RESULT_LINES:] if line.startswith(_FAILURE_NOTES))][
        :_MOST_LINES
    ]


_RESULT_LINES = 3
_MOST_LINES = _RESULT_LINES + 2
_FAILURE_NOTES = ("[timeout: ",)
_STDERR_HEAD = "[stderr]"
_NOTE_LINES = 4
"""The last lines of a result in which the notes of the sandbox stand."""
_EXIT_CODE = re.compile(r"^\[exit code ([1-9][^\]\n]*)\]$", re.MULTILINE)
_TIMEOUT = re.compile(r"^\[timeout: ", re.MULTILINE)
_PAGE = re.compile(r"# ([^\n]*)\n\nSource(?: \[(\d+)\])?: (\S+)[^\n]*(?:\n\n|$)")


def _list_lines(values: list[Any]) -> list[str]:
    if values and all(isinstance(one, dict) and isinstance(one.get("url"), str) for one in values):
        return [counted(len(values), "result"), *_first_lines([*map(_source_line, values)], "result")]
    return (
        [counted(len(values), "item"), *_first_lines([*map(_as_text, values)], "item")]
        if values
        else ["0 items"]
    )


def _source_line(source: Mapping[str, Any]) -> str:
    """Return the number, the title and the host of a source."""
    url = str(source["url"])
    host = url.partition("://")[2].partition("/")[0] or url
    number = f"[{source['cite']}] " if source.get("cite") else ""
    return f"{number}{one_line(str(source.get('title') or url), 100)} ({one_line(host, 60)})"


def _first_lines(lines: list[str], noun: str) -> list[str]:
    if not lines:
        return ["(no output)"]
    more = len(lines) - _RESULT_LINES
    shown = lines[:_RESULT_LINES]
    return [*shown, f"… {counted(more, f'more {noun}')}"] if more > 0 else shown


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else _as_json(value)


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def reason_line(text: str, longest: int = 400) -> str:
    """Return the reason why a step failed in one line."""
    return f"↳ {result_line(text, longest)}"


def arguments_line(arguments: Mapping[str, Any], longest: int = 400) -> str:
    """Return a tool's arguments in one line; a single argument without its name."""
    shown = {name: _as_text(value) for name, value in arguments.items()}
    if len(shown) == 1:
        return one_line(next(iter(shown.values())), longest)
    return one_line(", ".join(f"{name}={value}" for name, value in shown.items()), longest)


def step_line(step: "BrowserStepChanged", longest: int = 400) -> str:
    """Return a browser step's action and its result in one line, or "" if it is not finished."""
    if step.state != "observing" or not step.action:
        return ""
    parameters = step.action.get("parameters")
    shown = arguments_line(parameters, longest) if isinstance(parameters, Mapping) else ""
    action = " ".join(filter(None, (str(step.number), one_line(str(step.action.get("name"))), shown)))
    mark = "✘ " if step.success is False else ""
    return one_line(
        f"{action} ({duration(step.seconds)}): {mark}{result_line(step.observation or '')}", longest
    )


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC: title, clipboard, links
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c]*(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-Z\\-~]"
)
# C0 and C1 without tab and newline; changes of the writing direction; surrogates.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# The same, and also carriage returns, other line ends, and characters without width.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
_LINE_END = re.compile("\r\n|[\u2028\u2029\x85]")


def clean(text: str) -> str:
    """Return `text` without the control characters and sequences that a terminal interprets.

    If a sequence is split, for example by streaming, only its escape character is removed: the rest is
    visible and harmless.
    """
    return _CONTROL.sub("", _SEQUENCE.sub("", _LINE_END.sub("\n", text)))


def escape_invisible(text: str) -> str:
    """Return `text` with each invisible or control character as an escape sequence.

    For text that a user decides on: nothing of it may be missing or look like something else.
    """
    return _INVISIBLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def clean_event(event: "Event") -> "Event":
    """Return the event with all its text cleaned.

    A question to the user is returned as it is: views print it with `escape_invisible`, which loses nothing.
    """
    if event.type in ("interrupt", "step_interrupt"):
        return event
    return type(event).model_validate(_clean_all(event.data())).in_turn(event.turn, event.at)


def _clean_all(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean_all(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): _clean_all(item) for key, item in value.items()}
    return value


# `json` escapes only C0; a terminal would interpret the others.
_UNESCAPED = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def json_line(value: object) -> str:
    """Return `value` as JSON in one line that is safe to print."""
    text = json.dumps(value, ensure_ascii=False)
    return _UNESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def source_lines(sources: Iterable["Source"]) -> Iterator[str]:
    """Yield two lines for each source: its number, title, kind and local time; then its URL."""
    for one in sources:
        at = datetime.fromtimestamp(one.retrieved_at).astimezone()
        about = [one_line(text, 60) for text in (one.publisher, one.published) if text]
        title = ", ".join([one_line(one.title, 100), *about])
        yield f"[{one.number}] {title} ({one.kind}, {at:%Y-%m-%d %H:%M})"
        yield f"    {one.url}"


def claim_lines(checked: "ClaimsChecked", *, with_all: bool = False) -> Iterator[str]:
    """Yield the score of an answer, then the claims and citations that are marked, safe to print.

    With `with_all` also the other claims. A claim is followed by its reason and what a source says.
    """
    if checked.score:
        yield one_line(clean(checked.score.strip("*")))
    shown = [one for one in checked.claims if with_all or one.verdict in ("contradicted", "absent")]
    numbers = {one.mark for one in shown}
    for one in shown:
        yield from _claim_lines(one)
    for citation in checked.marked_citations:
        if citation.mark not in numbers:
            yield f"- {citation.kind}: {one_line(clean(citation.text))}"
            yield f"    {one_line(clean(citation.reason))}"
    if not shown and not checked.marked_citations:
        yield "Nothing in the answer is marked."
    if checked.unlisted:
        yield f"{counted(checked.unlisted, 'more claim')} not listed."


def _claim_lines(claim: "ClaimView") -> Iterator[str]:
    heads = " · ".join(filter(None, (claim.row, claim.column)))
    cited = "".join(f"[{number}]" for number in claim.citations)
    text = f"{heads}: {claim.text}" if heads else claim.text
    yield f"- {claim.verdict}: {one_line(clean(text))} {cited}".rstrip()
    if claim.reason:
        yield f"    {one_line(clean(claim.reason))}"
    if claim.passage is not None:
        place = f"[{claim.passage.source}]" if claim.passage.source else "given"
        yield f"    {place} {one_line(clean(claim.passage.text))}"
