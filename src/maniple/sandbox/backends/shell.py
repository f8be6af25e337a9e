"""Commands of the shell that every Linux machine understands, and what their output says.

They need bash, coreutils, findutils and grep. What comes back is the word of a machine on which
untrusted code runs: it is parsed, and never believed further than that.
"""

import base64
import binascii
import shlex
from collections.abc import Iterator, Sequence

from maniple.sandbox.beneath import MAX_DEPTH
from maniple.sandbox.mirror import Stamp

MARK = "MANIPLE_CALL"
"""The variable by which the processes of one call are found again."""
LISTING_BYTES = 2_000_000
_AT_ONCE = 20


def make_workspace() -> str:
    """Make a working directory and print it: /workspace where that can be made, else one at home."""
    return (
        "mkdir -p /workspace 2>/dev/null && chmod 0777 /workspace 2>/dev/null "
        "|| sudo -n install -d -m 0777 /workspace 2>/dev/null; "
        'cd /workspace 2>/dev/null && test -w . || { mkdir -p "$HOME/workspace" && cd "$HOME/workspace"; }; '
        "pwd"
    )


def list_files(directory: str, limit: int) -> str:
    """Print `limit` ordinary files: bytes, time of the last change and path of each, as base64."""
    found = f"find . -xdev -maxdepth {MAX_DEPTH} -type f -links 1 -printf '%s %T@ %P\\0' 2>/dev/null"
    bounded = f"head -z -n {limit} | head -c {LISTING_BYTES} | base64 -w 0"
    return f"cd {shlex.quote(directory)} && {found} | {bounded}"


def read_listing(printed: str) -> dict[str, Stamp]:
    """What `list_files` printed; a line that makes no sense is left out."""
    try:
        entries = base64.b64decode(printed, validate=True).split(b"\0")
    except (binascii.Error, ValueError):
        return {}
    files: dict[str, Stamp] = {}
    for entry in entries[:-1]:  # the last is empty, or cut
        size, _, rest = entry.decode(errors="replace").partition(" ")
        changed, _, path = rest.partition(" ")
        if path and size.isascii() and size.isdecimal():
            files[path] = Stamp(int(size[:18]), changed[:40])
    return files


def print_file(directory: str, path: str, limit_bytes: int) -> str:
    """Print a plus and the beginning of a file; nothing where there is no file."""
    name = shlex.quote(f"{directory}/{path}")
    return f"test -f {name} && printf + && head -c {limit_bytes} -- {name}"


def remove_files(directory: str, paths: Sequence[str]) -> Iterator[str]:
    """Commands that remove files; a path is the host's own word."""
    for start in range(0, len(paths), _AT_ONCE):
        names = shlex.join(f"./{path}" for path in paths[start : start + _AT_ONCE])
        yield f"cd {shlex.quote(directory)} && rm -f -- {names}"


def kill_call(mark: str) -> str:
    """Kill every process that was started with this mark, whatever group it has moved to."""
    marked = f"grep -lzsx {shlex.quote(f'{MARK}={mark}')} /proc/[0-9]*/environ"
    return f"for e in $({marked}); do p=${{e#/proc/}}; kill -KILL ${{p%%/*}}; done 2>/dev/null; true"
