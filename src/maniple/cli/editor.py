"""Editing a text: in the person's editor, or at the prompt when there is none."""

import asyncio
import os
import shlex
import signal
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from maniple.cli.decisions import Edit

if TYPE_CHECKING:
    from maniple.cli.prompt import Prompt


class EditorFailure(Exception):
    """The editor cannot be started, or ended with a failure; the message says so."""


async def edit(what: Edit, prompt: "Prompt") -> str:
    """Return the text as the person left it.

    $VISUAL or $EDITOR is used where one is set. Raises `EditorFailure`, and what `Prompt.edit` raises.
    """
    command = _command()
    if not command:
        return await prompt.edit(what.text.strip())
    descriptor, name = await asyncio.to_thread(tempfile.mkstemp, what.suffix, "maniple-")
    file = Path(name)
    try:
        os.close(descriptor)
        await asyncio.to_thread(file.write_text, what.text, encoding="utf-8")
        await _run(command, file)
        return await asyncio.to_thread(file.read_text, encoding="utf-8", errors="replace")
    finally:
        # Not in a thread: nothing may be awaited while the program is being cancelled.
        _remove(file)


async def _run(command: str, file: Path) -> None:
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    # Ctrl-C is the editor's own matter.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    try:
        process = await asyncio.create_subprocess_exec(*shlex.split(command), str(file))
        try:
            status = await process.wait()
        except asyncio.CancelledError:
            process.terminate()
            raise
    except (OSError, ValueError) as error:
        raise EditorFailure(f"The editor {command!r} cannot be started: {error}. Set EDITOR.") from error
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
    if status != 0:
        raise EditorFailure(f"The editor ended with status {status}; nothing was taken over.")


def _command() -> str:
    environ = os.environ  # noqa: TID251 - the editor is the person's and no setting of ours
    return environ.get("VISUAL") or environ.get("EDITOR") or ""


def _remove(file: Path) -> None:
    with suppress(OSError):
        file.unlink()
