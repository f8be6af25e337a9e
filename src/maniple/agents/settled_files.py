"""Files of a step that are not there on purpose: the user renamed them, or the step removed them."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from maniple.agents.deliverables import find_file_names
from maniple.agents.done_calls import COMMAND_END, DoneCall
from maniple.agents.tool_observations import is_program_failure, split_words
from maniple.types import is_dict, is_list

_REMOVES = re.compile(
    r"\b(?:rm|rmdir|rmtree|unlink|remove|delete|trash|shred|mv|move|rename|undo\w*)\b|\bos\.replace\b",
    re.IGNORECASE,
)
"""Words of a command, an operation or a tool's name, after which a file is gone or elsewhere."""
_WRITES = re.compile(
    r">|\b(?:write\w*|create|edit|editor|copy|cp|tee|touch|dump)\b|\bto_\w+|\bsave\w*|open\([^)]*['\"][wax]",
    re.IGNORECASE,
)


def is_settled(name: str, calls: Sequence[DoneCall], answer: str, *, is_claimed: bool) -> bool:
    """Return whether the step removed the file after it was there, or the user gave it another name.

    An answer that claims to have written it under the old one (`is_claimed`) must have the new one, too.
    """
    named = re.compile(rf"(?<![\w.-]){re.escape(name.rpartition('/')[2])}(?!\w)", re.IGNORECASE)
    renamed = [new for one in calls for new in _new_names(named, one)]
    is_renamed = bool(renamed) and (not is_claimed or any(one and one in answer for one in renamed))
    return is_renamed or _is_removed(named, calls)


def _new_names(named: re.Pattern[str], call: DoneCall) -> Iterator[str]:
    """Yield with what the user replaced the name in an argument: the names of files in it, or ""."""
    for key, value in call.written.items():
        new = _text(call.arguments.get(key))
        if named.search(_text(value)) and not named.search(new):
            yield from [one.rpartition("/")[2] for one in find_file_names(new)] or [""]


def _is_removed(named: re.Pattern[str], calls: Sequence[DoneCall]) -> bool:
    """Return whether the last call that changes a file removes it, and it was there.

    What removes without a file's name, such as `rm -r out` or `path.unlink()`, may remove any.
    """
    is_known = is_removed = False
    actions = ((*one, not call.programs()) for call in calls for one in _actions(call))
    for action, text, is_tool in actions:
        is_named = named.search(text) is not None
        if _REMOVES.search(action) and (is_named or not find_file_names(text)):
            # A tool fails if the file is not there; a command such as `rm -f` does not.
            is_removed = is_known or (is_named and is_tool)
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
            yield from ((one, one) for one in COMMAND_END.split(program) if one.strip())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
