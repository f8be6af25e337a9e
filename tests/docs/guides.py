"""The code blocks of a guide, and a run of all of them in a folder of their own.

A block of the manual is executed by its language:
    sh          one program together with the page's other commands, in their order
                `maniple serve` alone is a server that runs while they do; its address takes the place of
                the guide's
    python      a program of its own
    js          a program of its own for Node.js, with the packages of the page of the service
                (the address of a program, too, is that of the server)
    LANGUAGE title="FILE"    written to FILE before anything runs
    bash, text, toml, ini and others without a title are for reading.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from tests.serving import ROOT, server_process

_FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.S | re.M)
_ADDRESS = "http://127.0.0.1:8000"
_SECONDS = 200
_RUNNERS = {
    "python": (sys.executable, "-c"),
    "js": ("node", "--input-type=module", "--eval"),
}


@dataclass(frozen=True)
class Guide:
    """What a page of the manual tells its reader to write and to run."""

    files: dict[str, str]
    commands: str
    programs: tuple[tuple[str, str], ...]
    """Their languages and their text."""
    has_server: bool

    def run(self, folder: Path, env: Mapping[str, str]) -> str:
        """Write the files into `folder`, run everything there, and return all output."""
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        if any(language == "js" for language, _ in self.programs):
            (folder / "node_modules").symlink_to(ROOT / "web/node_modules")
        env = {**env, "PATH": f"{Path(sys.executable).parent}:{env['PATH']}"}
        with self._server(folder, env) as url:
            commands = self.commands.replace(_ADDRESS, url)
            said = _run(["bash", "-euo", "pipefail", "-c", commands], folder, env) if commands else ""
            for language, code in self.programs:
                said += _run([*_RUNNERS[language], code.replace(_ADDRESS, url)], folder, env)
        return said

    def at(self, url: str) -> "Guide":
        """Return the same guide with the site at `url` in place of example.com."""
        return replace(self, commands=self.commands.replace("https://example.com", url))

    @contextmanager
    def _server(self, folder: Path, env: Mapping[str, str]) -> Iterator[str]:
        with server_process(dict(env), folder) if self.has_server else nullcontext() as server:
            yield server.url if server else _ADDRESS


def read_guide(page: str) -> Guide:
    """Return what the page `docs/PAGE` contains."""
    files, commands, programs, has_server = {}, "", [], False
    for language, title, code in _FENCE.findall((ROOT / "docs" / page).read_text(encoding="utf-8")):
        if title:
            files[title] = code
        elif language == "sh" and code.strip() == "maniple serve":
            has_server = True
        elif language == "sh":
            commands += code
        elif language in _RUNNERS:
            programs.append((language, code))
    return Guide(files, commands, tuple(programs), has_server)


def _run(command: list[str], folder: Path, env: Mapping[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
