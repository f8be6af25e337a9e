"""Changes the `.env` of a running program, after a check of the settings that follow from it."""

import io
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from dotenv.parser import parse_stream

from maniple.config.load import load_settings
from maniple.config.settings import Settings
from maniple.config.sources import read_text
from maniple.config.trust import is_free_of_settings, is_trusted, trust_folder
from maniple.errors import ConfigError
from maniple.private_files import private_draft

_MODE = 0o600
"""Of a new file: keys are in it."""
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_PLAIN = re.compile(r"[\w./:@%+,=~?&-]+")


class SettingsNotWritable(ConfigError):
    """The file of the settings cannot be changed from here; the message says why and what to do."""

    code = "settings_not_writable"


def variables_file(settings: Settings) -> Path:
    """Return the `.env` that these settings were read from, which exists or can be made.

    A folder that was not trusted at the start may be trusted by now, or have no settings to distrust; see
    `folder_to_trust`. Blocks on disk. Raises `SettingsNotWritable` if it must not be written or would have no
    effect.
    """
    origin = settings.origin
    if origin.variables_file is None:
        raise SettingsNotWritable("These settings come from a program and not from files; change them there.")
    file = origin.variables_file.resolve()
    folder = _untrusted_folder(settings)
    if folder is not None and not _may_be_trusted(folder, settings):
        raise SettingsNotWritable(
            f"The folder {folder} is not trusted, so that its .env could not set a model. If you know where "
            f"its files come from, run `maniple trust {shlex.quote(str(folder))}`, and open this again."
        )
    place = file if file.exists() else file.parent
    # Root may write anything: the bits say what the file's owner wants.
    if not os.access(place, os.W_OK) or not place.stat().st_mode & _WRITABLE:
        raise SettingsNotWritable(f"{place} is read-only. Make it writable, or set the values yourself.")
    return file


def folder_to_trust(settings: Settings) -> Path | None:
    """Return the folder that `write_variables` trusts, as `maniple trust` does; None if it is trusted.

    This is a folder of the caller's own without any settings file, such as an empty one. Blocks on disk.
    """
    folder = _untrusted_folder(settings)
    return folder if folder is not None and _may_be_trusted(folder, settings) else None


def _untrusted_folder(settings: Settings) -> Path | None:
    origin = settings.origin
    places = (
        (origin.settings_file, origin.is_trusted),
        (origin.variables_file, origin.are_variables_trusted),
    )
    folders = (file.parent.resolve() for file, had_trust in places if file is not None and not had_trust)
    return next((folder for folder in folders if not is_trusted(folder, os.environ)), None)


def _may_be_trusted(folder: Path, settings: Settings) -> bool:
    origin = settings.origin
    files = [file for file in (origin.settings_file, origin.variables_file) if file is not None]
    if any(file.parent.resolve() != folder for file in files):
        return False
    try:
        return is_free_of_settings(folder, [file.name for file in files])
    except OSError:
        return False


def write_variables(settings: Settings, values: Mapping[str, str]) -> Settings:
    """Write variables into the `.env` of `settings`, and return the settings that the files have now.

    All other lines stay as they are; the file is replaced as a whole, with mode 0600 unless it has one. The
    environment still wins over it. The folder of `folder_to_trust` is trusted from then on. Blocks on disk.
    Raises `SettingsNotWritable`, or `ConfigError` for values with which the settings would be wrong; then
    nothing has changed.
    """
    file = variables_file(settings)
    text = "".join(_changed(read_text(file) or "", values))
    try:
        mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else _MODE
        with private_draft(file) as new:
            with new.open("w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            new.chmod(mode)
            _check(settings, new, file)
            if (folder := folder_to_trust(settings)) is not None:
                trust_folder(folder)
    except OSError as error:
        raise SettingsNotWritable(f"{file} cannot be written: {error.strerror}.") from error
    return load_settings(settings.origin.settings_file, env_file=file)


def _check(settings: Settings, new: Path, file: Path) -> None:
    try:
        load_settings(settings.origin.settings_file, env_file=new)
    except ConfigError as error:
        raise ConfigError(str(error).replace(str(new), str(file))) from None


def _changed(text: str, values: Mapping[str, str]) -> Iterator[str]:
    """Yield the pieces of the new text."""
    left, end = dict(values), "\n"
    for binding in parse_stream(io.StringIO(text)):
        original = binding.original.string
        if binding.key is not None and binding.key in values:
            left.pop(binding.key, None)
            blank = original[: len(original) - len(original.lstrip())]
            original = f"{blank}{_line(binding.key, values[binding.key])}"
        end = original[-1:] or end
        yield original
    if left and end != "\n":
        yield "\n"
    yield from (_line(name, value) for name, value in left.items())


def _line(name: str, value: str) -> str:
    if not _PLAIN.fullmatch(value):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        value = f"'{escaped}'"
    return f"{name}={value}\n"
