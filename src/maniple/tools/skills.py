"""Skills: folders with a `SKILL.md`, which a worker reads if its task needs them.

The format is that of agentskills.io: a YAML head with `name` and `description`, then instructions in
Markdown. Scripts and other files beside it are copied to the thread's workspace when the skill is read, so
that sandboxed code can use them.
"""

import asyncio
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from maniple.errors import ConfigError, FileError
from maniple.scope.run_scope import thread_key
from maniple.tools.registry import tool_factory
from maniple.tools.text_file import escape_unprintable
from maniple.types import is_dict
from maniple.workspace import Workspace, Workspaces

MAX_SKILLS = 50
MAX_FILES = 50
MAX_BYTES = 64_000
"""The limit of a `SKILL.md`, and of other texts that are read."""
MAX_FILE_BYTES = 2_000_000
MAX_LOOKED_AT = 1_000
MAX_NAMED = 20
DESCRIPTION_CHARACTERS = 1_024
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_HEAD = re.compile(r"\A---[ \t]*\n(.{0,8000}?)\n---[ \t]*\n(.*)\Z", re.S)


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill; only regular files in its folder (`place`) are read, no links."""

    name: str
    description: str
    instructions: str
    place: Workspace


def find_skills(folder: Path) -> list[Skill]:
    """Return the skills in a folder, sorted by path; a folder with a `SKILL.md` is itself the only skill.

    Skills may be links to folders. Blocks on disk. Raises `ConfigError` with the path of an invalid file.
    """
    try:
        with os.scandir(folder) as entries:
            places = sorted(Path(one.path).resolve() for one in entries if one.is_dir())
        if os.path.lexists(folder / "SKILL.md"):
            places = [folder]
    except OSError as error:
        raise ConfigError(f"{folder}: the folder of skills cannot be read: {error.strerror}") from error
    found = [place for place in places if os.path.lexists(place / "SKILL.md")]
    if len(found) > MAX_SKILLS:
        raise ConfigError(f"{folder} has {len(found)} skills. Remove some: at most {MAX_SKILLS} are allowed.")
    return [_read(place) for place in found]


def _read(folder: Path) -> Skill:
    place, file = Workspace(folder, MAX_FILE_BYTES), folder / "SKILL.md"
    try:
        text = _text(place, "SKILL.md")
    except FileError as error:
        raise ConfigError(f"{file}: {error}") from error
    parts = _HEAD.match(text)
    if parts is None:
        raise ConfigError(f"{file}: it must begin with a head between two lines of ---, then instructions.")
    try:
        head: Any = yaml.safe_load(parts[1])
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: the head is not valid YAML") from error
    fields: dict[str, Any] = head if is_dict(head) else {}
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(f"{file}: name must consist of a-z, 0-9 and -, at most 64 characters.")
    if not isinstance(description, str) or not 0 < len(description.strip()) <= DESCRIPTION_CHARACTERS:
        most = DESCRIPTION_CHARACTERS
        raise ConfigError(f"{file}: description must say when to use it, in at most {most} characters.")
    return Skill(name, " ".join(description.split()), parts[2].strip(), place)


def _text(place: Workspace, path: str) -> str:
    """Return the content of a text file; raises `FileError` if it is not UTF-8 or too long."""
    head = place.read(path, MAX_BYTES)
    if head.size > MAX_BYTES:
        raise FileError(f"{path!r} has {head.size} bytes; at most {MAX_BYTES} are read.")
    try:
        return head.content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise FileError(f"{path!r} is no text in UTF-8.") from None


class _Wanted(BaseModel):
    name: str = Field(description="The skill.")
    file: str = Field(default="", description="A text of the skill; its instructions, if nothing.")


@tool_factory("read_skill")
def skill_tool(skills: Sequence[Skill], workspaces: Workspaces | None) -> BaseTool:
    """Return the tool `read_skill`, which returns the instructions or a text file of a skill.

    With the instructions, the skill's other files are copied to `skills/NAME` in the thread's workspace.
    Files beyond the limits are named as left out. The tool raises `FileError` for an unknown skill or file.
    """
    by_name = {skill.name: skill for skill in skills}

    async def read_skill(name: str, file: str = "") -> str:
        skill = by_name.get(name)
        if skill is None:
            raise FileError(f"There is no skill {name!r}; there are {', '.join(by_name)}.")
        if file:
            return await asyncio.to_thread(_text, skill.place, file)
        return await asyncio.to_thread(_copy_files, skill, workspaces, thread_key())

    return StructuredTool.from_function(
        coroutine=read_skill,
        name="read_skill",
        description="Read a skill: instructions for a kind of task, and the files that come with it.",
        args_schema=_Wanted,
        metadata={"idempotent": True, "said_by": "skill"},
    )


def _copy_files(skill: Skill, workspaces: Workspaces | None, key: str) -> str:
    found, left_out = _files(skill)
    words = [skill.instructions]
    if found and workspaces is not None:
        target, folder = workspaces.open(key), f"skills/{skill.name}"
        for path in found:
            with skill.place.open(path) as file:
                is_program = bool(os.fstat(file.fileno()).st_mode & 0o100)
                target.write_read_only(f"{folder}/{path}", file.read(MAX_FILE_BYTES), executable=is_program)
        where = f"Files of this skill, now in the workspace at {folder}, only to be read:"
        words.append(_format_list(where, found))
    elif found:
        words.append(_format_list("Files of this skill, for `read_skill`:", found))
    if left_out:
        words.append(
            _format_list(f"Left out of this skill, which may have {MAX_FILES} files of 2 MB:", left_out)
        )
    return "\n\n".join(words)


def _files(skill: Skill) -> tuple[list[str], list[str]]:
    """Return the files of a skill that are copied, and descriptions of those that are left out."""
    files = [(path, size) for path, size in skill.place.files(MAX_LOOKED_AT) if path != "SKILL.md"]
    fit = [path for path, size in files if size <= MAX_FILE_BYTES][:MAX_FILES]
    rest = [f"{path} ({size / 1e6:.1f} MB)" for path, size in files if path not in fit]
    more = len(rest) - MAX_NAMED
    return fit, rest if more <= 0 else [*rest[:MAX_NAMED], f"and {more} more"]


def _format_list(title: str, names: Sequence[str]) -> str:
    return "\n".join([title, *(f"- {escape_unprintable(name)}" for name in names)])
