"""Changes the `.env` of a running program, after a check of the settings that follow from it."""

import io
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from dotenv.parser import parse_stream

from maniple.config.load import load_settings
from maniple.config.settings import Settings
from maniple.config.sources import read_text
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

    Blocks on disk. Raises `SettingsNotWritable` if it must not be written or would have no effect.
    """
    origin = settings.origin
    if origin.variables_file is None:
        raise SettingsNotWritable("These settings come from a program and not from files; change them there.")
    file = origin.variables_file.resolve()
    if not (origin.are_variables_trusted and origin.is_trusted):
        raise SettingsNotWritable(
            f"The folder {file.parent} is not trusted, so that its .env could not set a model. If you know "
            "where its files come from, run `maniple trust` there, start the service again, and repeat this."
        )
    place = file if file.exists() else file.parent
    # Root may write anything: the bits say what the file's owner wants.
    if not os.access(place, os.W_OK) or not place.stat().st_mode & _WRITABLE:
        raise SettingsNotWritable(f"{place} is read-only. Make it writable, or set the values yourself.")
    return file


def write_variables(settings: Settings, values: Mapping[str, str]) -> Settings:
    """Write variables into the `.env` of `settings`, and return the settings that the files have now.

    All other lines stay as they are; the file is replaced as a whole, with mode 0600 unless it has one. The
    environment still wins over it. Blocks on disk. Raises `SettingsNotWritable`, or `ConfigError` for values
    with which the settings would be wrong; then nothing has changed.
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
