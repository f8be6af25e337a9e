"""Runs Chromium in bubblewrap where the server is root, as code is run.

As root, Chromium can only start without a sandbox of its own, and a page that breaks out of its renderer
would be root. Here it runs as the account of sandboxed code, sees /usr, its profile and the folder of its
downloads, and has no network but a unix socket, behind which the server's egress proxy checks each address.
Its own sandbox works inside, too.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import BrowserError, Unavailable
from maniple.sandbox.host import find_programs
from maniple.sandbox.isolation import (
    CERTIFICATES,
    INNER_FORWARDER,
    INNER_SOCKET,
    OWN_FILES,
    PROXY_PORT,
    WORKSPACE,
    BindMount,
    Isolation,
    IsolationSpec,
    forward_command,
    read_forwarder,
)
from maniple.workspace.account import give_away

# Its shared memory is in /tmp, of which an eighth of this is the most.
_MEMORY_MB = 16_384
_VARIABLES = {"HOME": WORKSPACE, "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "TMPDIR": "/tmp"}
_FONT_CACHE = "/var/cache/fontconfig"
_ERROR = re.compile(r"bwrap: [^\n]+")
_SETTINGS_OF_PACKAGE = "/etc/chromium.d"
_UNPROTECTED = "Chromium would run as root without a sandbox"
_REMEDY = (
    "run the server as an ordinary user, or repair the sandbox (`maniple doctor` names what it needs), or "
    "set `sandbox.backend: unsafe-local` if Chromium may run as root without one."
)


class LaunchFolders(Protocol):
    """What one Chromium may use; `maniple.browser.isolation` describes it."""

    @property
    def root(self) -> Path: ...
    @property
    def downloads(self) -> Path: ...
    @property
    def executable(self) -> Path: ...
    @property
    def proxy(self) -> Path | None: ...


class BubblewrapChromium:
    """Builds the command of a Chromium in bubblewrap."""

    proxy_port = PROXY_PORT

    def __init__(self, settings: SandboxSettings, search_path: str | None = None) -> None:
        self._python = settings.python
        self._search_path = search_path

    def check(self) -> None:
        """Raise `Unavailable` if there is no sandbox here, as far as that is seen without a start.

        Blocks on disk.
        """
        try:
            find_programs(self._python, self._search_path)
        except Unavailable as error:
            raise Unavailable(f"{_UNPROTECTED}: {error.reason}", f"{error.remedy}; or {_REMEDY}") from error

    def explain(self, failure: str) -> str:
        """Return the message for a sandbox that did not start; empty for other output."""
        found = _ERROR.search(failure)
        return f"{_UNPROTECTED}, which did not start: {found[0]}. To change this, {_REMEDY}" if found else ""

    def build_argv(self, folders: LaunchFolders) -> Sequence[str]:
        """Prepare the folders of a launch, and return a command that takes Chromium's arguments.

        Blocks on disk. Raises `BrowserError` where bubblewrap and its companions are missing.
        """
        try:
            programs = find_programs(self._python, self._search_path)
        except Unavailable as error:
            raise BrowserError(f"{_UNPROTECTED}: {error}") from error
        home = folders.root / "home"
        for folder in (home, folders.downloads):
            folder.mkdir(mode=0o700, exist_ok=True)
            for path in (folder, *folder.rglob("*")):
                give_away(path)
        spec = IsolationSpec(
            home,
            _VARIABLES,
            _MEMORY_MB,
            read_only=tuple(_readable(folders)),
            writable=((str(folders.downloads), str(folders.downloads)),),
            is_proc_writable=True,  # its own sandbox maps user ids there
        )
        argv = Isolation(programs).build_argv(spec)
        if folders.proxy is None:
            return [*argv, "--share-net", "--remount-ro", "/", "--", str(folders.executable)]
        return [
            *argv,
            "--remount-ro",
            "/",
            "--",
            *forward_command(programs.sh, programs.python),
            str(folders.executable),
        ]


def _readable(folders: LaunchFolders) -> Sequence[BindMount]:
    own = {**OWN_FILES, INNER_FORWARDER: read_forwarder()}
    given: list[BindMount] = []
    for inner, content in own.items():
        file = folders.root / inner.replace("/", "-").strip("-")
        file.write_bytes(content)
        file.chmod(0o644)
        given.append((str(file), inner))
    if folders.proxy is not None:
        given.append((str(folders.proxy), INNER_SOCKET))
    # A link in /usr/bin leads to its folder; that of Playwright's is in somebody's home.
    places = [folders.executable.resolve().parent, folders.executable.parent]
    seen = [str(place) for place in dict.fromkeys(places) if not place.is_relative_to("/usr")]
    seen += [*CERTIFICATES, _FONT_CACHE, _SETTINGS_OF_PACKAGE]
    return [*given, *((path, path) for path in seen if Path(path).is_dir())]


def find_chromium_isolation(settings: SandboxSettings) -> BubblewrapChromium | None:
    """Return how to isolate a Chromium of this server; None where its own sandbox does, or none is wanted.

    None is wanted with `unsafe-local`, by which the operator lets code run with the server's rights.
    """
    if os.geteuid() != 0 or settings.backend == "unsafe-local":
        return None
    return BubblewrapChromium(settings)
