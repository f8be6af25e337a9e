"""Files of a step that are not there on purpose: the user renamed them, or the step removed them."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from maniple.agents.deliverables import find_file_names
from maniple.agents.done_calls import DoneCall
from maniple.agents.tool_observations import is_program_failure, split_words
from maniple.types import is_dict, is_list

_COMMAND_END = re.compile(r"\n|;|&&|\|\|?")
_REMOVES = re.compile(
    r"\b(?:rm|rmdir|rmtree|unlink|remove|delete|trash|shred|mv|move|rename|undo\w*)\b|\bos\.replace\b",
    re.IGNORECASE,
)
"""Words of a command, an operation or a tool's name, after which a file is gone or elsewhere."""
_WRITES = re.compile(
    r">|\b(?:write\w*|create|edit|editor|copy|cp|tee|touch|dump)\b|\bto_\w+|\bsave\w*|open\([^)]*['\"][wax]",
    re.IGNORECASE,
)


def is_settled(name: str, calls: Sequence[DoneCall]) -> bool:
    """Return whether the user gave the file another name, or the step removed it after it was there."""
    named = re.compile(rf"(?<![\w.-]){re.escape(name.rpartition('/')[2])}(?!\w)", re.IGNORECASE)
    return any(_is_renamed(named, one) for one in calls) or _is_removed(named, calls)


def _is_renamed(named: re.Pattern[str], call: DoneCall) -> bool:
    """Return whether the user replaced the name in an argument."""
    return any(
        named.search(_text(value)) and not named.search(_text(call.arguments.get(key)))
        for key, value in call.written.items()
    )


def _is_removed(named: re.Pattern[str], calls: Sequence[DoneCall]) -> bool:
    """Return whether the last call that changes a file removes it, after an earlier one named it.

    What removes without a file's name, such as `rm -r out` or `path.unlink()`, may remove any.
    """
    is_known = is_removed = False
    for action, text in (one for call in calls for one in _actions(call)):
        is_named = named.search(text) is not None
        if _REMOVES.search(action) and (is_named or not find_file_names(text)):
            is_removed = is_known
        elif is_named and _WRITES.search(action):
            is_removed = False
        is_known = is_known or is_named
    return is_removed


def _actions(call: DoneCall) -> Iterator[tuple[str, str]]:
    """Yield what a call does, in its order: the words that say it, and the text that names its files."""
    programs = call.programs()
    rest = {key: value for key, value in call.arguments.items() if value not in programs}
    for value in rest.values():
        for operation in value if is_list(value) else ():
            if is_dict(operation):
                yield _text(operation), _text(operation)
    yield split_words(call.name), _text(rest)
    if not is_program_failure(call.result):
        for program in programs:
            yield from ((one, one) for one in _COMMAND_END.split(program) if one.strip())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
