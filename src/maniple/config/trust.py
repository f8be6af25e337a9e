"""Trusted folders: only their `conf.yaml` and `.env` may set more than the settings marked `HARMLESS`.

A command reads both files in the folder where it is called, which may be a download of somebody else. Files
that the caller names are trusted, and so is the folder of the source tree that the program runs from.
"""

import difflib
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from platformdirs import user_config_path
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from maniple.config.sources import TRUSTED_FOLDERS_VARIABLE, SettingsSource
from maniple.config.values import HARMLESS, Section
from maniple.errors import ConfigError

_SOURCE_TREE = Path(__file__).parents[3]
_MAX_UNKNOWN_NAMES = 10
_MAX_NAME_LENGTH = 60
_UNPRINTABLE = re.compile(r"[^\w.-]")


def is_trusted(folder: Path, environment: Mapping[str, str]) -> bool:
    """Return whether the settings files of `folder` are trusted. Blocks on disk."""
    folder = folder.resolve()
    named = environment.get(TRUSTED_FOLDERS_VARIABLE, "").split(os.pathsep)
    if any(folder == Path(one).expanduser().resolve() for one in named if one):
        return True
    return _is_own_source_tree(folder) or _mark_of(folder, environment).is_file()


def is_free_of_settings(folder: Path, names: Iterable[str]) -> bool:
    """Return whether no settings in `folder` could be a stranger's, so that it may be trusted unseen.

    It belongs to the caller, not everybody may write into it, and it has none of the files `names`, not even
    as a broken link. Blocks on disk. Raises `OSError`.
    """
    found = folder.stat()
    is_own = found.st_uid == os.geteuid() and not found.st_mode & stat.S_IWOTH
    return is_own and not any(os.path.lexists(folder / name) for name in names)


def trust_folder(folder: Path, environment: Mapping[str, str] | None = None) -> None:
    """Trust the settings files of `folder` from now on. Raises `ConfigError` if that cannot be stored."""
    folder = folder.resolve()
    mark = _mark_of(folder, environment)
    try:
        mark.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        mark.write_bytes(os.fsencode(folder))
    except OSError as error:
        raise ConfigError(f"{mark} cannot be written: {error.strerror}.") from error


def revoke_trust(folder: Path, environment: Mapping[str, str] | None = None) -> bool:
    """Forget the trust in `folder`; return whether it was stored."""
    mark = _mark_of(folder.resolve(), environment)
    try:
        mark.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ConfigError(f"{mark} cannot be removed: {error.strerror}.") from error
    return True


def list_trusted_folders(environment: Mapping[str, str] | None = None) -> list[Path]:
    """Return the folders that `trust_folder` has stored, sorted."""
    marks = _marks_folder(environment)
    if not marks.is_dir():
        return []
    return sorted(Path(os.fsdecode(mark.read_bytes())) for mark in marks.iterdir() if mark.is_file())


def _is_own_source_tree(folder: Path) -> bool:
    """Return whether the program runs from the source tree in `folder`, whose files it executes anyway."""
    return folder == _SOURCE_TREE.resolve() and (folder / "pyproject.toml").is_file()


def _marks_folder(environment: Mapping[str, str] | None) -> Path:
    environment = os.environ if environment is None else environment
    # Not in `data_dir`, which is itself a setting.
    if root := environment.get("XDG_CONFIG_HOME", "").strip():
        return Path(root) / "maniple" / "trusted"
    return user_config_path("maniple", appauthor=False) / "trusted"


def _mark_of(folder: Path, environment: Mapping[str, str] | None) -> Path:
    # A file for each folder: two commands that trust at the same time do not overwrite each other.
    return _marks_folder(environment) / hashlib.sha256(os.fsencode(folder)).hexdigest()


def restrict_to_harmless(
    source: SettingsSource, settings: type[BaseModel]
) -> tuple[SettingsSource, list[str]]:
    """Return the part of `source` that an untrusted folder may set, and the names of all other settings.

    A name that is no setting stands with the one that it probably means. A setting that equals its default
    has no effect, so it is not named.
    """
    harmless = SettingsSource(strangers=source.strangers)
    known: list[str] = []
    unknown: list[str] = []
    for keys, value, field, model in _walk_settings(source.values, settings, ()):
        if field is None:
            unknown.append(_describe_unknown(keys, model))
        elif HARMLESS in field.metadata:
            harmless.put(keys, value, source.places.get(keys, ""))
        elif not _is_default(value, field):
            known.append(".".join(keys))
    return harmless, [*known, *_shorten_names(unknown)]


def describe_skipped(file: Path, names: Iterable[str]) -> str:
    """Return the notice about the settings of an untrusted file that have no effect."""
    return (
        f"{file.absolute()} is in a folder that is not trusted, so these settings in it have no effect: "
        f"{', '.join(names)}. If you know where the file comes from, run: maniple trust"
    )


def _walk_settings(
    values: Mapping[Any, Any], model: type[BaseModel], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any, FieldInfo | None, type[BaseModel]]]:
    """Yield path, value, field and section of each setting; the field of an unknown key is None."""
    for key, value in values.items():
        keys = (*above, str(key))
        field = model.model_fields.get(str(key))
        section = _section_of(field) if field else None
        if section is not None and isinstance(value, Mapping):
            yield from _walk_settings(value, section, keys)
        else:
            yield keys, value, field, model


def _section_of(field: FieldInfo) -> type[Section] | None:
    options = (field.annotation, *get_args(field.annotation))
    is_optional = not get_args(field.annotation) or type(None) in get_args(field.annotation)
    sections = [one for one in options if isinstance(one, type) and issubclass(one, Section)]
    return sections[0] if is_optional and sections else None


def _is_default(value: Any, field: FieldInfo) -> bool:
    default = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, list):
        value = tuple(value)
    return value is None or bool(value == default)


def _describe_unknown(keys: tuple[str, ...], model: type[BaseModel]) -> str:
    """Return an unknown name, safe to print, with the setting that it probably means."""
    name = _UNPRINTABLE.sub("?", ".".join(keys))[:_MAX_NAME_LENGTH]
    close = difflib.get_close_matches(keys[-1][:_MAX_NAME_LENGTH], model.model_fields, n=1)
    meant = f"; did you mean {'.'.join((*keys[:-1], *close))}?" if close else ""
    return f"{name} (there is no such setting{meant})"


def _shorten_names(names: list[str]) -> list[str]:
    """Return few of the names that a stranger has chosen."""
    shown = names[:_MAX_UNKNOWN_NAMES]
    more = len(names) - len(shown)
    return [*shown, f"{more} more unknown names"] if more else shown
