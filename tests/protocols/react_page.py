"""A page of React with LangGraph's client, built and served on this machine; a real Chromium opens it."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

# Put there by `setup.sh dev`.
PACKAGES = Path(sys.prefix, "react/node_modules")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium"))), None)
NEEDED = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here"),
    pytest.mark.skipif(not PACKAGES.is_dir(), reason="setup.sh dev has not installed @langchain/react"),
]
_PAGE = '<!doctype html><div id="root"></div><script type="module" src="page.mjs"></script>'
_FLAGS = ("--bundle", "--format=esm", "--jsx=automatic", "--log-level=error")
_DEFINED = '--define:process.env.NODE_ENV="production"'


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def build_page(entry: Path, folder: Path) -> None:
    """Make the page of the program `entry` in `folder`."""
    esbuild = next(PACKAGES.glob("@esbuild/*/bin/esbuild"))
    command = [esbuild, entry, *_FLAGS, _DEFINED, f"--outfile={folder / 'page.mjs'}"]
    subprocess.run(command, check=True, env={"NODE_PATH": str(PACKAGES)}, timeout=60)
    (folder / "index.html").write_text(_PAGE, encoding="utf-8")


@contextmanager
def serve_page(folder: Path) -> Iterator[str]:
    """Serve the files of `folder`; yield their origin."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as files:
        Thread(target=files.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{files.server_port}"
        files.shutdown()
