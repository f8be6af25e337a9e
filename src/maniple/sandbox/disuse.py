"""Removes environments that nobody has used for long, and what interrupted installations left."""

import fcntl
import os
import shutil
import time
from pathlib import Path

KEPT_SECONDS = 30 * 24 * 3600.0


def remove_unused(home: Path) -> None:
    """Clear `home`, whose lock the caller holds, of all but environments that are used now or were lately."""
    for folder in [one for one in home.iterdir() if one.is_dir()]:
        if folder.suffix == ".part":
            shutil.rmtree(folder, ignore_errors=True)
        elif _is_disused(folder / "ready.json"):
            # Renamed first: half of one must not look whole.
            gone = folder.with_suffix(".part")
            folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)


def _is_disused(marker: Path) -> bool:
    try:
        if time.time() - marker.stat().st_mtime < KEPT_SECONDS:
            return False
        descriptor = os.open(marker, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody uses it, or nobody can say
        return False
    finally:
        os.close(descriptor)
    return True
