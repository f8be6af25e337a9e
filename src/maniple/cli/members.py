"""Who works on a question, as people write it."""

import difflib
from collections.abc import Iterable, Sequence

from maniple.types import Worker


class UnknownMember(ValueError):
    """A name that is nobody's on this team; the message names those who are."""


def parse_members(names: Iterable[str], available: Sequence[Worker]) -> tuple[Worker, ...]:
    """Return the named members in the team's order; raises `UnknownMember` with the nearest name."""
    wanted = {part.strip().casefold().replace("-", "_") for name in names for part in name.split(",")} - {""}
    for name in sorted(wanted - set(available)):
        close = difflib.get_close_matches(name, available, n=1)
        guess = f" Did you mean {close[0]}?" if close else ""
        raise UnknownMember(f"There is no {name!r} on the team.{guess} Members: {', '.join(available)}.")
    return tuple(member for member in available if member in wanted)
