"""The marks in which models write tool calls when their endpoint does not parse them.

`ENVELOPES` is the table. Another model's form is added there: the marks that open it, and the function that
reads what follows them. A reader looks only at what it consumes, or up to the next mark, so that a text is
read in linear time.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from maniple.agents.call_forms import (
    Calls,
    CallSource,
    TextCall,
    calls_in_json,
    calls_in_python,
    clean_name,
    is_plain_text,
)
from maniple.types import is_dict

Reading = tuple[Calls, int]
"""Calls, and the end of what was read."""
_NOTHING: Reading = ((), 0)

_MARK = r"<[|｜][^<>|｜\n]{0,40}[|｜]>"
"""A control mark such as `<|call|>` or `<｜tool▁sep｜>`."""
_PREFIX = r"(?:[\w-]{1,20}:|longcat_|[|｜]DSML[|｜])?"
_TAG = rf"{_PREFIX}(?:tool_?calls?|function_?calls?|tool_use|tool_code|tool)"
_NAME = r"[A-Za-z_][\w.:/\\-]{0,119}"
_NAMED = r"(?:\s*=\s*|\s+name\s*=\s*)[\"']?(?P<name>[^\"'<>\n]{1,120})[\"']?"
"""The name in a tag: `=NAME` or `name="NAME"`."""
_CLOSING_MARK = (
    r"<[|｜](?=/|call[|｜]|[^<>|｜\n]{0,40}(?:end|eo[mt]_id|suffix|return)|END)[^<>|｜\n]{1,40}[|｜]>"
)
_CLOSINGS = re.compile(
    rf"(?:\s*+(?:</{_PREFIX}\w{{1,30}}>|{_CLOSING_MARK}|\[/TOOL_CALLS\]|\[END_TOOL_REQUEST\]))*+", re.I
)
_PYTHON_END = re.compile(r"\)\]?(?=[ \t]*\r?\n)")
_MAX_LINES = 5
_FENCE_END = re.compile(r"\s*+```")
_ELEMENT_END = re.compile(rf"\s*+(?:</{_PREFIX}(?:function|invoke)>|\Z)", re.I)
_LINE_START, _LINE_END = re.compile(r"\A\r?\n"), re.compile(r"\r?\n[ \t]*\Z")
_SEGMENT_END = re.compile(
    rf"</?{_TAG}|<[|｜]|\[(?:/?TOOL_CALLS|END_TOOL_REQUEST)\]|</?{_PREFIX}(?:function|invoke|param(?:eter)?)\b"
    rf"|</?{_PREFIX}arg_|\Z",
    re.I,
)
_FILLER = re.compile(rf"(?:\s+|{_MARK}|\[ARGS\]|\[CALL_ID\]\w*|```\w*|(?:json|code|commentary)\b){{0,12}}+")
_HEADER = re.compile(rf"(?:\w{{1,40}}\s*{_MARK}\s*)?(?P<name>{_NAME})", re.I)
"""A name, perhaps after the kind of the call or its id."""
_SEPARATOR = re.compile(r"[\s,;]*+")
_PARAMETER = re.compile(rf"\s*+<{_PREFIX}param(?:eter)?{_NAMED}[^<>\n]{{0,80}}>", re.I)
_VALUE_END = re.compile(
    rf"(?P<closing></{_PREFIX}param(?:eter)?>)"
    rf"|</?{_PREFIX}(?:function|invoke|param(?:eter)?)\b[^<>\n]{{0,120}}>"
    rf"|</{_TAG}>|<{_TAG}>|\Z",
    re.I,
)
_KEY = re.compile(
    rf"\s*+(?:<tool_sep>\s*+)?<{_PREFIX}arg_key>(?P<name>[^<]{{1,120}})</{_PREFIX}arg_key>\s*+"
    rf"<{_PREFIX}arg_value>",
    re.I,
)
_KEY_END = re.compile(
    rf"(?P<closing></{_PREFIX}arg_value>)|<{_PREFIX}arg_key>|</?{_PREFIX}tool_call>|\Z", re.I
)
_INPUT_END = re.compile(r"^\**(?:Observation|Thought|Action|Final Answer|✿RESULT✿)\b|\Z", re.M)
_GEMMA_TOKEN = re.compile(
    r'<(?:\|"\||escape)>(?P<text>.*?)<(?:\|"\||escape)>|"(?:[^"\\\n]|\\.)*+"|(?P<key>[A-Za-z_]\w*)\s*:'
    r"|(?P<end><\|?tool_call\|?>|<end_function_call>)|.",
    re.S,
)
_GEMMA_CLOSING = re.compile(r"\s*(?:<tool_call\|>|<end_function_call>)")


def _read_payload(source: CallSource, opening: re.Match[str]) -> Reading:
    """Read the calls after a mark: in JSON, in Python's form, or names with arguments."""
    text, calls, end = source.text, list[TextCall](), 0
    start, is_fenced = _skip_filler(text, opening.end())
    while True:
        is_json = text.startswith(("{", "["), start)
        more, after = _read_json(source, start) if is_json else _read_named(source, start)
        if not more:
            return (tuple(calls), _close_fence(text, end) if is_fenced else end) if calls else _NOTHING
        calls, end = [*calls, *more], after
        start = _skip(_SEPARATOR, text, end)


def _read_json(source: CallSource, start: int) -> Reading:
    try:
        value, end = source.json_at(start)
    except ValueError:
        end = _segment_end(source, start)
        if calls := calls_in_python(source.text[start:end], source.names):
            return calls, end
        value = source.repaired(start, end)
    return calls_in_json(value, source.names, is_marked=True), end


def _read_named(source: CallSource, start: int) -> Reading:
    """Read a name with its arguments: `name{…}`, `name(…)`, or keys and values in tags."""
    text = source.text
    if not (header := _HEADER.match(text, start)):
        return _NOTHING
    if (found := read_arguments(source, header["name"], header.end()))[0]:
        return found
    if text.startswith("(", header.end()):
        return _read_python(source, start)
    arguments, end = _read_values(text, header.end(), _KEY, _KEY_END)
    name = clean_name(header["name"], source.names)
    begin, _ = _skip_filler(text, header.end())
    if not arguments and (name not in source.names or begin != _segment_end(source, begin)):
        return _NOTHING
    return (_marked(name, arguments),), end


def _read_python(source: CallSource, start: int) -> Reading:
    """Read calls in Python's form up to the next mark, or up to the end of a line that prose follows."""
    last = _segment_end(source, start)
    lines = (one.end() for one in islice(_PYTHON_END.finditer(source.text, start, last), _MAX_LINES))
    for end in (last, *lines):
        if calls := calls_in_python(source.text[start:end], source.names):
            return calls, end
    return _NOTHING


def _read_named_arguments(source: CallSource, opening: re.Match[str]) -> Reading:
    """Read the arguments of the tool that the opening marks name."""
    return read_arguments(source, opening["name"], opening.end())


def _read_input(source: CallSource, opening: re.Match[str]) -> Reading:
    """Read the arguments of the tool that is named, or a text that is the only one."""
    if (found := _read_named_arguments(source, opening))[0]:
        return found
    name, ending = clean_name(opening["name"], source.names), _INPUT_END.search(source.text, opening.end())
    assert ending is not None, "the end of the text is an end"
    value = source.text[opening.end() : ending.start()].strip()
    if name not in source.names or not is_plain_text(value):
        return _NOTHING
    return (TextCall(name, {}, (value.strip("\"'"),), is_sure=True, is_envelope=True),), ending.start()


def read_arguments(source: CallSource, name: str, start: int) -> Reading:
    """Read the JSON object that follows a name, after marks and an opening fence."""
    start, is_fenced = _skip_filler(source.text, start)
    if not source.text.startswith("{", start):
        return _NOTHING
    try:
        value, end = source.json_at(start)
    except ValueError:
        end = _segment_end(source, start)
        value = source.repaired(start, end)
    if not is_dict(value):
        return _NOTHING
    end = _close_fence(source.text, end) if is_fenced else end
    return (_marked(clean_name(name, source.names), value),), end


def _read_parameters(source: CallSource, opening: re.Match[str]) -> Reading:
    """Read `<parameter=KEY>value</parameter>` or `<parameter name="KEY">`, or the arguments as JSON."""
    arguments, end = _read_values(source.text, opening.end(), _PARAMETER, _VALUE_END)
    if not arguments and (found := _read_named_arguments(source, opening))[0]:
        return found
    name = clean_name(opening["name"], source.names)
    if not arguments and (name not in source.names or not _ELEMENT_END.match(source.text, end)):
        return _NOTHING
    return (_marked(name, arguments),), end


def _read_gemma(source: CallSource, opening: re.Match[str]) -> Reading:
    """Read an object of bare keys and `<|"|>texts<|"|>` as the arguments of the tool that is named."""
    parts, end, depth = list[str](), opening.end(), 0
    for token in _GEMMA_TOKEN.finditer(source.text, end):
        if token["text"] is not None:
            parts.append(json.dumps(token["text"]))
        else:
            parts.append(f'"{token["key"]}":' if token["key"] else token[0])
        end, depth = token.end(), depth + {"{": 1, "}": -1}.get(token[0], 0)
        if token["end"] or (depth == 0 and token[0] == "}"):
            break
    try:
        arguments = json.loads("".join(parts))
    except ValueError:
        return _NOTHING
    name = clean_name(opening["name"], source.names)
    return (_marked(name, arguments),), _skip(_GEMMA_CLOSING, source.text, end)


def _read_values(
    text: str, start: int, key: re.Pattern[str], value_end: re.Pattern[str]
) -> tuple[dict[str, Any], int]:
    """Return the texts between the tags of keys, without the line ends around them, and their end."""
    values = dict[str, Any]()
    while found := key.match(text, start):
        ending = value_end.search(text, found.end())
        assert ending is not None, "the end of the text is an end"
        value = text[found.end() : ending.start()]
        values[found["name"].strip()] = _LINE_END.sub("", _LINE_START.sub("", value))
        start = ending.end() if ending["closing"] else ending.start()
    return values, start


def _skip(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Return the end of what matches at `start`; `start` if nothing does."""
    found = pattern.match(text, start)
    return found.end() if found else start


def _skip_filler(text: str, start: int) -> tuple[int, bool]:
    """Return where marks and white space end, and whether a fence opens among them."""
    end = _skip(_FILLER, text, start)
    return end, "```" in text[start:end]


def _close_fence(text: str, end: int) -> int:
    return _skip(_FENCE_END, text, end)


def _marked(name: str, arguments: dict[str, Any]) -> TextCall:
    return TextCall(name, arguments, is_sure=True, is_envelope=True)


def _segment_end(source: CallSource, start: int) -> int:
    found = _SEGMENT_END.search(source.text, start)
    assert found is not None, "the end of the text is an end"
    return found.start()


_GENERIC = rf"(?:(?:<{_TAG}>|(?:\bfunction)?{_MARK})\s*+){{0,3}}"
"""What may stand before the mark that opens an envelope."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """The marks that open calls, and the function that reads the calls after them."""

    opening: str
    """A pattern; where it has a group `name`, that is the tool's."""
    read: Callable[[CallSource, re.Match[str]], Reading]


ENVELOPES: tuple[Envelope, ...] = (
    # Qwen3-Coder, Llama 3.1, Seed: <function=NAME><parameter=KEY>value</parameter></function>
    # Anthropic, MiniMax, DeepSeek 3.2: <invoke name="NAME"><parameter name="KEY">value</parameter></invoke>
    Envelope(rf"<(?:{_PREFIX}(?:function|invoke)|{_TAG}){_NAMED}\s*>", _read_parameters),
    # gpt-oss: <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>
    Envelope(
        rf"(?:(?:assistant|commentary|analysis)\s*+(?:{_MARK}\s*+)?){{0,3}}\bto\s?=\s?(?P<name>{_NAME})",
        _read_named_arguments,
    ),
    # Gemma 4: <|tool_call>call:NAME{KEY:<|"|>value<|"|>}<tool_call|>; FunctionGemma: <start_function_call>
    Envelope(rf"(?:<\|tool_call>|<start_function_call>)\s*call:(?P<name>{_NAME})(?=\s*\{{)", _read_gemma),
    # ReAct: Action: NAME, and Action Input: {…} on the next line; Qwen-Agent: ✿FUNCTION✿, ✿ARGS✿
    Envelope(
        rf"^(?:\*\*Action:\*\*|Action:|✿FUNCTION✿:)[ \t]*`?(?P<name>{_NAME})`?[ \t]*\r?\n\s*"
        r"(?:\*\*Action Input:\*\*|Action Input:|✿ARGS✿:)",
        _read_input,
    ),
    # ReAct with NAME(…) or JSON; Command R: Action: and a fence of JSON
    Envelope(r"^(?:\*\*Action:\*\*|Action:)[ \t]*(?=[`\[{\r\n]|[\w.]{1,120}\()", _read_payload),
    # Mistral: [TOOL_CALLS][{…}], [TOOL_CALLS]NAME{…}, [TOOL_CALLS]NAME[ARGS]{…}; LM Studio: [TOOL_REQUEST]
    Envelope(r"\[TOOL_(?:CALLS?|REQUEST)\]", _read_payload),
    # Phi-4-mini, FireFunction
    Envelope(r"\bfunctools(?=\[)", _read_payload),
    # DeepSeek, Kimi: <｜tool▁call▁begin｜>, <|tool_call_begin|>; Solar: <|tool_call:begin|>; Granite, Phi
    Envelope(r"<[|｜]tool[▁_]?calls?(?:[▁_:](?:section[▁_])?(?:begin|start))?[|｜]>", _read_payload),
    # Llama, Apertus, Command, InternLM
    Envelope(r"<\|(?:python_tag|tools_prefix|start_action|plugin)\|>", _read_payload),
    # Hermes, Qwen, GLM, Nemotron: <tool_call>{…}</tool_call>, <tool_call>NAME<arg_key>…
    Envelope(rf"<{_TAG}>", _read_payload),
)
FIRST_LETTERS = "[TtAaCcFf*✿]"
"""With these begin the openings that do not begin with a bracket."""
MARKS = f"(?i:{_GENERIC}(?:{'|'.join(one.opening.replace('?P<name>', '?:') for one in ENVELOPES)}))"
"""A pattern that matches where an envelope may open; with several lines."""
_OPENINGS = [(re.compile(_GENERIC + one.opening, re.I | re.M), one.read) for one in ENVELOPES]


def read_envelope(source: CallSource, start: int) -> Reading:
    """Return the calls in the envelope that opens at `start`, and its end; no calls if there is none."""
    for opening, read in _OPENINGS:
        found = opening.match(source.text, start)
        calls, end = read(source, found) if found else _NOTHING
        if calls:
            return calls, _skip(_CLOSINGS, source.text, end)
    return _NOTHING
