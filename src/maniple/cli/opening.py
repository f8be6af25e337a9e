"""From settings to a conversation, telling meanwhile what is done and then which model is used."""

import asyncio
from collections.abc import AsyncIterator, Container, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from maniple.cli.loading import loading
from maniple.cli.screens import Screens
from maniple.config import Settings
from maniple.errors import BrowserError, ConfigError
from maniple.types import GENERAL, Worker

if TYPE_CHECKING:
    from maniple.cli.session import Session
    from maniple.graph import RunOptions
    from maniple.runtime import Answering

ALONE: tuple[Worker, ...] = (GENERAL, "browser")
"""Who can be given a run alone; a conversation goes on with one of theirs, whoever began it."""
_DRAIN_SECONDS = 0.5
"""Somebody waits for the prompt of the shell."""
_ONLY_READS = (
    "This model is too small to work in a page: it only reads the one that the task names, and does nothing "
    "there. --mode and --strategy have no effect. Set BASIC_MODEL in .env for a larger one."
)


@dataclass(frozen=True, slots=True)
class Choices:
    """What the command line says about every run."""

    members: tuple[Worker, ...] = ()
    deep: bool = False
    search_first: bool = False
    review: bool = False
    json: bool = False
    thread: str = ""
    """The conversation to go on with: its id, or the beginning of it."""
    resumes: bool = False
    """Whether a run that was cut off goes on first; `demands`: whether that was asked for."""
    demands: bool = False
    files: tuple[Path, ...] = ()
    """What the team is given."""
    agent: Worker = ""
    """Who answers alone."""


@asynccontextmanager
async def open_session(settings: Settings, choices: Choices, screens: Screens) -> AsyncIterator["Session"]:
    """Open the team and a conversation with it. Raises the `ManipleError` that keeps it from opening."""
    progress = screens.progress()
    try:
        progress.step("starting the team")
        # Two seconds of imports: they come after the words.
        with loading():
            from maniple.cli.belongings import open_belongings
            from maniple.cli.chat_log import configure_chat_log
            from maniple.cli.conversations import Conversations
            from maniple.cli.session import Session
            from maniple.graph import members_of
            from maniple.report_files import Press
            from maniple.runs import Workplace, open_engine, recover_run, rules_of
            from maniple.runtime import open_runtime
            from maniple.runtime.toolbox import workspaces_of
            from maniple.store.configured import open_configured_store

        configure_chat_log(settings)
        workspaces = await asyncio.to_thread(workspaces_of, settings)
        rules = replace(rules_of(settings), drain_seconds=_DRAIN_SECONDS)
        async with (
            open_belongings(workspaces) as belongings,
            open_configured_store(settings, server=False) as store,
            open_runtime(
                settings,
                checkpointer=store.checkpointer,
                progress=progress,
                on_call=ALONE,
            ) as runtime,
            open_engine(
                runtime.graph,
                store,
                kind="chat",
                rules=rules,
                workplace=Workplace(workspaces, runtime.sandbox, runtime.warning),
            ) as engine,
        ):
            progress.close()
            announce(runtime.answering, runtime.notices, screens)
            _require(choices.agent, runtime.graph.nodes, runtime.missing)
            if choices.agent == "browser" and runtime.only_reads:
                screens.note(_ONLY_READS, "yellow")
            yield Session(
                engine,
                Conversations(store, lambda left: recover_run(engine, store, left)),
                members_of(runtime.graph),
                lambda: screens.view(json=choices.json),
                belongings,
                _options(choices),
                settings.team.max_plan_steps,
                settings.data_dir / "pages",
                Press(runtime.browser, runtime.missing.get("browser", "")),
            )
    finally:
        progress.close()


def _options(choices: Choices) -> "RunOptions":
    from maniple.graph import RunOptions

    return RunOptions(
        team_members=choices.members,
        deep_thinking_mode=choices.deep,
        search_before_planning=choices.search_first,
        auto_accepted_plan=not choices.review,
        agent=choices.agent,
    )


def _require(agent: Worker, there: Container[str], missing: Mapping[Worker, str]) -> None:
    if agent and agent not in there:
        if agent in missing:
            raise BrowserError(missing[agent])
        raise ConfigError(
            f"{agent} needs a model that can call tools; this one is too small. Set BASIC_MODEL in .env."
        )


def announce(answering: "Answering", notices: Sequence[str], screens: Screens) -> None:
    """Say which model is used, and what is absent. No endpoint has been asked anything yet."""
    for text in _greeting(answering):
        screens.note(text, "dim")
    for notice in notices:
        screens.note(f"• {notice}", "dim")


def _greeting(answering: "Answering") -> Iterator[str]:
    if answering.embedded:
        yield f"Using {answering.model}, a small model inside this program: it may be wrong."
    else:
        yield f"Using {answering.model} at {answering.url}."
    if answering.advice:
        yield answering.advice
