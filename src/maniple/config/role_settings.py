"""What can be set of a role that is not built in: a few words in conf.yaml and a prompt in Markdown."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from maniple.config.section import Section
from maniple.types import DIRECTORS, GENERAL, WORKERS, LLMType, Worker

MAX_PROMPT_BYTES = 32_768
MAX_NAMES = 32
# Other nodes of the graph, LangChain's nodes inside of an agent, and words of the terminal's.
_TAKEN = frozenset(
    {*DIRECTORS, *WORKERS, GENERAL, "solo", "clarify", "review", "model", "tools", "plan", "all", "everyone"}
)


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A Markdown file and what stands in it."""

    path: Path
    text: str = field(repr=False)


def _read(path: object) -> object:
    if not isinstance(path, str | Path):
        return path
    file = Path(path).expanduser()
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_PROMPT_BYTES + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is no text in UTF-8") from error
    if len(content) > MAX_PROMPT_BYTES:
        raise ValueError(f"{file} is longer than {MAX_PROMPT_BYTES} bytes, which every call would send")
    if not text.strip():
        raise ValueError(f"{file} is empty: write what the role is to do")
    return PromptFile(file, text)


def _is_free(name: str) -> str:
    if name in _TAKEN:
        raise ValueError(f"{name} is taken; there are {', '.join(sorted(_TAKEN))} already")
    return name


RoleName = Annotated[Worker, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$"), AfterValidator(_is_free)]


class RoleSettings(Section):
    """One role that is added to the team."""

    name: RoleName
    brief: str = Field(min_length=1, max_length=300)
    """What the planner and the supervisor are told: what it does, what it cannot."""
    description: str = Field(default="", max_length=300)
    """What clients are told; the brief, if nothing."""
    prompt: Annotated[PromptFile, BeforeValidator(_read)]
    """A Markdown file; a relative path begins at the folder of conf.yaml."""
    llm: LLMType = "basic"
    tools: tuple[str, ...] = Field(default=(), max_length=MAX_NAMES)
    """Names of tools: built-in ones, those of `tools`, and those that installed packages offer."""
    optional: bool = True
    """Whether clients may leave it out."""
