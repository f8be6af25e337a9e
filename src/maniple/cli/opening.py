"""From settings to a conversation, telling meanwhile what is done and then which model answers."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maniple.cli.screens import Screens
from maniple.config import Settings
from maniple.types import Worker

if TYPE_CHECKING:
    from maniple.cli.session import Session
    from maniple.runtime import Answering


@dataclass(frozen=True, slots=True)
class Choices:
    """What the command line says about every run."""

    members: tuple[Worker, ...] = ()
    deep: bool = False
    search_first: bool = False
    review: bool = False
    json: bool = False


@asynccontextmanager
async def open_session(settings: Settings, choices: Choices, screens: Screens) -> AsyncIterator["Session"]:
    """Open the team and a conversation with it. Raises the `ManipleError` that keeps it from opening."""
    progress = screens.progress()
    try:
        progress.step("starting the team")
        # Two seconds of imports: they come after the words.
        from langgraph.checkpoint.memory import InMemorySaver

        from maniple.cli.session import Session
        from maniple.graph import RunOptions
        from maniple.runs import open_runs
        from maniple.runtime import open_runtime

        async with (
            open_runtime(settings, checkpointer=InMemorySaver(), progress=progress) as runtime,
            open_runs(runtime.graph) as runs,
        ):
            progress.close()
            announce(runtime.answering, runtime.notices, screens)
            options = RunOptions(
                team_members=choices.members,
                deep_thinking_mode=choices.deep,
                search_before_planning=choices.search_first,
                auto_accepted_plan=not choices.review,
            )
            working: list[Worker] = [name for name in settings.team.members if name in runtime.graph.nodes]
            yield Session(runs, working, lambda: screens.view(json=choices.json), options)
    finally:
        progress.close()


def announce(answering: "Answering", notices: Sequence[str], screens: Screens) -> None:
    """Say which model answers, and what is absent."""
    for text in _greeting(answering):
        screens.note(text, "dim")
    for notice in notices:
        screens.note(f"• {notice}", "dim")


def _greeting(answering: "Answering") -> Iterator[str]:
    if answering.embedded:
        yield f"{answering.model} answers, a small model inside this program: it may be wrong."
    else:
        yield f"{answering.model} at {answering.url} answers."
    if answering.advice:
        yield answering.advice
