"""Who of the team has which skills."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from langchain_core.tools import BaseTool

from maniple.config import Settings
from maniple.errors import ConfigError
from maniple.prompts import render
from maniple.sandbox import Workspaces
from maniple.tools.skills import Skill, find_skills, skill_tool
from maniple.types import Worker


@dataclass(frozen=True, slots=True)
class TeamSkills:
    """The tool that reads each worker's skills, and the words of its prompt that name them."""

    by_worker: Mapping[Worker, BaseTool] = field(default_factory=dict)
    words: Mapping[Worker, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    def tools(self, worker: Worker) -> Sequence[BaseTool]:
        """Return what the worker is given: the tool, or nothing."""
        return [self.by_worker[worker]] if worker in self.by_worker else []


def skills_of(settings: Settings, workspaces: Workspaces | None) -> TeamSkills:
    """Return the skills of the folders that `settings` name; blocks on disk, raises `ConfigError`."""
    given: dict[Worker, dict[str, Skill]] = {}
    notices: list[str] = []
    for place, entry in enumerate(settings.skills):
        found = find_skills(entry.folder)
        if not found:
            notices.append(f"{entry.folder} holds no skills: each is a folder in it that holds a SKILL.md.")
        for worker in entry.roles:
            known = given.setdefault(worker, {})
            if twice := [skill.name for skill in found if skill.name in known]:
                at = settings.origin.place_of(("skills", place))
                raise ConfigError(f"{at}: skills.{place}: {worker} has another skill called {twice[0]}.")
            known.update((skill.name, skill) for skill in found)
    present = {worker: list(skills.values()) for worker, skills in given.items() if skills}
    return TeamSkills(
        {worker: skill_tool(skills, workspaces) for worker, skills in present.items()},
        {worker: render("skills", skills=skills) for worker, skills in present.items()},
        tuple(notices),
    )
