"""The clipboard: through a program of the desktop, else through the terminal (OSC 52)."""

import asyncio
import base64
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator, Mapping, Sequence

from maniple.text import file_size

OSC_LIMIT = 74_994
"""The most bytes that are sent through the terminal: in base64 they are 99,992 characters.

Longer sequences are cut or ignored by common terminals.
"""
_SECONDS = 5.0


def clipboard_programs(environ: Mapping[str, str], platform: str) -> Iterator[Sequence[str]]:
    """Yield the commands that may fill the clipboard of the desktop that these variables belong to.

    On a machine that is reached by SSH the desktop is elsewhere, unless its display is forwarded.
    """
    if platform == "darwin":
        if not environ.get("SSH_CONNECTION"):
            yield ("pbcopy",)
        return
    if environ.get("WAYLAND_DISPLAY"):
        yield ("wl-copy",)
    if environ.get("DISPLAY"):
        yield ("xclip", "-selection", "clipboard")
        yield ("xsel", "--clipboard", "--input")
    if environ.get("TERMUX_VERSION"):
        yield ("termux-clipboard-set",)


async def copy_text(text: str) -> str:
    """Put a text into the clipboard; return a sentence about what was done, or why nothing was."""
    data = text.encode("utf-8", "replace")
    size, failed = file_size(len(data)), ""
    environ = os.environ  # noqa: TID251 - the desktop is the user's
    for command in clipboard_programs(environ, sys.platform):
        if shutil.which(command[0]) is None:
            continue
        if await _run(command, data):
            return f"Copied to the clipboard with {command[0]} ({size})."
        failed = f"{command[0]} failed. "
    if not sys.stdout.isatty():
        return f"{failed}Nothing was copied: there is no clipboard program, and the output is no terminal."
    if len(data) > OSC_LIMIT:
        return (
            f"{failed}Nothing was copied: the text has {size}, and a terminal takes {file_size(OSC_LIMIT)}. "
            "Enter /save FILE."
        )
    sys.stdout.write(f"\x1b]52;c;{base64.b64encode(data).decode('ascii')}\x07")
    sys.stdout.flush()
    return (
        f"{failed}Sent to the terminal's clipboard ({size}). A terminal does not confirm it: if nothing can "
        "be pasted, it refuses OSC 52; enter /save FILE."
    )


async def _run(command: Sequence[str], data: bytes) -> bool:
    """Give the text to a program; return whether it took it. Some stay in the background afterwards."""
    try:
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL)
    except OSError:
        return False
    try:
        async with asyncio.timeout(_SECONDS):
            await process.communicate(data)
    except (TimeoutError, OSError):
        return False
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode == 0
