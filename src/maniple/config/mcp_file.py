"""MCP servers as other programs write them down: `{"mcpServers": {NAME: {"command": …}}}`."""

import json
from pathlib import Path
from typing import Any

_MOST_BYTES = 1_000_000
_HOLDERS = ("mcpServers", "servers")


def read_servers(given: Any) -> Any:
    """Return the servers by name, whether `given` holds them, is a file's whole content, or its path.

    Raises `ValueError` with what is wrong with the file. Blocks on disk.
    """
    if isinstance(given, str | Path):
        given = _content(Path(given))
    if given is None:
        return {}
    for holder in _HOLDERS:
        if isinstance(given, dict) and _holds_servers(given.get(holder)):
            return given[holder]
    return given


def _holds_servers(value: Any) -> bool:
    """Whether it is a mapping of servers, and not itself a server of that name."""
    return isinstance(value, dict) and all(isinstance(one, dict) for one in value.values())


def _content(path: Path) -> Any:
    try:
        path = path.expanduser()
        with path.open("rb") as file:
            written = file.read(_MOST_BYTES)
        content = json.loads(written.decode("utf-8-sig"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RuntimeError, RecursionError):
        raise ValueError(f"{path} is not valid JSON") from None
    if isinstance(content, dict):
        return content
    raise ValueError(f'{path} must hold {{"mcpServers": {{…}}}}')
