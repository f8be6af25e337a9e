"""Whether the roles, tools and skills that are not built in can be used."""

from maniple.agents import roles_of
from maniple.cli.findings import Finding
from maniple.config import Settings
from maniple.errors import ConfigError
from maniple.runtime.own_tools import own_tools
from maniple.runtime.skills import skills_of


def check_own(settings: Settings) -> list[Finding]:
    """Load what is added to the team, as opening it does; nothing is said where there is nothing. Blocks."""
    parts = {"roles": settings.team.roles, "tools": settings.tools, "skills": settings.skills}
    added = ", ".join(f"{len(those)} {name}" for name, those in parts.items() if those)
    if not added:
        return []
    try:
        roles_of(settings.team)
        own_tools(settings, [])
        skills_of(settings, None)
    except ConfigError as error:
        return [Finding("your own", "problem", str(error), "Correct what is named; docs/roles.md says how.")]
    return [Finding("your own", "ok", f"{added} added to the team")]
