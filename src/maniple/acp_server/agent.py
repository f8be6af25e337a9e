"""The agent of an editor: its sessions and their prompts, and the program that serves them over pipes."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Literal, cast
from uuid import uuid4

from acp import PROTOCOL_VERSION, RequestError, update_agent_thought_text
from acp.agent.connection import AgentSideConnection
from acp.interfaces import Agent, Client
from acp.schema import (
    AgentCapabilities,
    ClientCapabilities,
    Implementation,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
    StopReason,
)

from maniple.acp_server.open_requests import OpenRequests
from maniple.acp_server.prompts import ContentBlock, PromptReader
from maniple.acp_server.turns import FollowedRun
from maniple.acp_server.updates import SessionUpdates
from maniple.config import Settings
from maniple.errors import ManipleError
from maniple.graph import RunOptions
from maniple.llms.embedded import Progress
from maniple.runs import AcceptedRun, NotFound, RunRequest, ServiceStopping
from maniple.runs.ended_runs import read_ended_run
from maniple.service import Service
from maniple.service.host_pipes import open_in_background, own_pipes, until_signal
from maniple.service.sent_files import store_files
from maniple.service.thread_views import get_thread, resolve_thread_id
from maniple.store import read_runs
from maniple.types import EFFORTS, Effort, RunState

_AUTO, _REVIEW = "auto", "review"
_MODES = (
    SessionMode(id=_AUTO, name="Work", description="The team makes a plan and executes it."),
    SessionMode(id=_REVIEW, name="Review the plan", description="The team shows its plan and waits."),
)
_EFFORT, _NO_EFFORT = "effort", "default"
_LEVELS: Mapping[str, Effort | Literal[""]] = {_NO_EFFORT: "", **{one: one for one in EFFORTS}}
"""The efforts by the values that an editor chooses from."""
_STOP_REASONS: Mapping[RunState, StopReason] = {
    "cancelled": "cancelled",
    "budget_exhausted": "max_turn_requests",
}
"""How a turn ends, by the status of its run; all others end with "end_turn"."""
_NO_EDITOR = ManipleError(
    "An editor starts this command and speaks with it over pipes, but standard input or output is a file "
    "or /dev/null. Register the command with an editor, as docs/protocols.md shows."
)
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class _Session:
    """A session: a thread, the run that is followed for it, and what the editor has chosen."""

    session_id: str
    mode: str = _AUTO
    effort: Effort | Literal[""] = ""
    not_used: list[str] = field(default_factory=list[str])
    """What the editor sent that has no effect; the user is told with the next prompt."""
    followed: FollowedRun | None = None
    following: asyncio.Task[None] | None = None
    """Follows a run that was at work when the session was loaded, until a prompt takes it over."""
    is_prompted: bool = False
    is_cancelled: bool = False
    """Whether the editor has cancelled the prompt."""


class TeamAgent:
    """The team as an agent. It answers before the service is `opened`; what needs the team waits.

    No end of a connection ends a run; only `cancel` does. Each method raises `RequestError`.
    """

    def __init__(self, opened: asyncio.Future[Service], requests: OpenRequests) -> None:
        self._opened = opened
        self._requests = requests
        self._sessions: dict[str, _Session] = {}
        self._client: Client | None = None
        self._can_read_files = False

    def on_connect(self, conn: Client) -> None:
        """Take the connection to the editor."""
        self._client = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: ClientCapabilities | None = None, **_: Any
    ) -> InitializeResponse:
        """Return what the agent can do; of the editor's abilities it uses the reading of files."""
        files = client_capabilities.fs if client_capabilities else None
        self._can_read_files = bool(files and files.read_text_file)
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True, prompt_capabilities=PromptCapabilities(image=True, embedded_context=True)
            ),
            agent_info=Implementation(
                name="maniple", title="maniple, a team of agents", version=version("maniple")
            ),
        )

    async def new_session(
        self,
        cwd: str = "",
        additional_directories: Sequence[str] | None = None,
        mcp_servers: Sequence[Any] | None = None,
        **_: Any,
    ) -> NewSessionResponse:
        """Begin a session; its thread is made by the first prompt."""
        notes = _name_unused(cwd, additional_directories, mcp_servers)
        session = self._add_session(str(uuid4()), notes)
        return NewSessionResponse(
            session_id=session.session_id,
            modes=_describe_modes(session),
            config_options=_describe_options(session),
        )

    async def load_session(
        self,
        session_id: str,
        cwd: str = "",
        additional_directories: Sequence[str] | None = None,
        mcp_servers: Sequence[Any] | None = None,
        **_: Any,
    ) -> LoadSessionResponse:
        """Send the conversation of a thread; a run that works, or waits, is followed after that."""
        async with self._serving() as (service, client):
            try:
                thread = await get_thread(service.store, session_id, "")
            except NotFound as error:
                raise RequestError.resource_not_found(session_id) from error
            notes = _name_unused(cwd, additional_directories, mcp_servers)
            session = self._add_session(session_id, notes)
            runs = [run async for run in read_runs(service.store.runs, thread.thread_id)]
            for run in reversed(runs):
                updates = SessionUpdates(is_replay=True)
                followed = FollowedRun(service, client, self._requests, session_id, run, updates=updates)
                await _replay(followed, is_first=session.followed is None)
                session.followed = followed
            if session.followed is not None and session.followed.is_open:
                session.following = asyncio.create_task(
                    _follow_in_background(session), name=f"follow {session_id}"
                )
        return LoadSessionResponse(modes=_describe_modes(session), config_options=_describe_options(session))

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        """Choose whether plans of later prompts are reviewed."""
        session = self._find_session(session_id)
        if mode_id not in {one.id for one in _MODES}:
            raise RequestError(-32602, f"There is no mode {mode_id!r}.")
        session.mode = mode_id
        return SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        """Choose how much the models reason for later prompts."""
        session = self._find_session(session_id)
        if config_id != _EFFORT:
            raise RequestError(-32602, f"There is no option {config_id!r}; there is {_EFFORT}.")
        chosen = _LEVELS.get(str(value))
        if chosen is None:
            raise RequestError(-32602, f"{_EFFORT} is one of {', '.join(_LEVELS)}, and not {value!r}.")
        session.effort = chosen
        return SetSessionConfigOptionResponse(config_options=_describe_options(session))

    async def prompt(self, session_id: str, prompt: Sequence[ContentBlock], **_: Any) -> PromptResponse:
        """Ask the team, or write to the run that works or waits; return when it ends or waits."""
        session = self._find_session(session_id)
        if session.is_prompted:
            raise RequestError(-32600, "The session has a prompt already. Cancel it, or wait for its end.")
        session.is_prompted, session.is_cancelled = True, False
        try:
            async with self._serving() as (service, client):
                reader = PromptReader(client, session_id, self._can_read_files)
                message = await reader.read(prompt)
                await _stop_following(session)
                # Accepted whole or not at all, even if the connection ends meanwhile.
                accepted = await asyncio.shield(
                    asyncio.ensure_future(_submit(service, session, message, reader))
                )
                notes = [*session.not_used, *reader.notes]
                session.not_used.clear()
                for note in notes:
                    await client.session_update(
                        session_id=session_id, update=update_agent_thought_text(f"{note}\n")
                    )
                session.followed = self._take_over(session, service, client, accepted)
                if session.is_cancelled:  # before the run was accepted
                    await _cancel_run(session.followed)
                return _end_turn(session, await _follow(session))
        finally:
            session.is_prompted = False

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Cancel the run of a session; what it has done stays."""
        session = self._sessions.get(session_id)
        if session is None:
            return
        session.is_cancelled = True
        if (followed := session.followed) is not None:
            await _cancel_run(followed)

    def _add_session(self, session_id: str, not_used: list[str]) -> _Session:
        session = _Session(session_id, not_used=not_used)
        before = self._sessions.get(session_id)
        if before is not None and before.following is not None:
            before.following.cancel()
        self._sessions[session_id] = session
        return session

    def _take_over(
        self, session: _Session, service: Service, client: Client, accepted: AcceptedRun
    ) -> FollowedRun:
        """Return the run to follow; of one that the editor has in part, what comes after that."""
        known = session.followed
        if known is not None and known.run.run_id == accepted.run.run_id:
            known.run = accepted.run
            return known
        return FollowedRun(service, client, self._requests, session.session_id, accepted.run, accepted.after)

    def _find_session(self, session_id: str) -> _Session:
        if session_id not in self._sessions:
            raise RequestError.resource_not_found(session_id)
        return self._sessions[session_id]

    @asynccontextmanager
    async def _serving(self) -> AsyncGenerator[tuple[Service, Client]]:
        """Yield the open service and the connection; turn this program's errors into the protocol's."""
        assert self._client is not None  # requests come over it
        with _translated_errors():
            service = await asyncio.shield(self._opened)  # a cancelled call must not cancel the opening
            yield service, self._client


@contextmanager
def _translated_errors() -> Any:
    try:
        yield
    except (RequestError, ConnectionError):
        raise
    except ManipleError as error:
        raise RequestError(-32603, str(error), {"code": error.code}) from error
    except Exception as error:
        _LOG.exception("A request failed.")
        raise RequestError(-32603, "The request failed with an internal error. See the log.") from error


def _name_unused(cwd: str, directories: Sequence[str] | None, mcp_servers: Sequence[Any] | None) -> list[str]:
    """Return what of a session's settings has no effect, as the notes that its first prompt shows."""
    notes = list[str]()
    if folders := ", ".join(filter(None, (cwd, *(directories or ())))):
        notes.append(
            f"Not used: the editor's folders ({folders}). The team has a folder of its own. Attach files to "
            "the prompt."
        )
    if names := ", ".join(str(one.name) for one in mcp_servers or ()):
        notes.append(
            f"Not used: the editor's MCP servers ({names}). Set mcp.servers in conf.yaml for the team."
        )
    return notes


def _describe_modes(session: _Session) -> SessionModeState:
    return SessionModeState(current_mode_id=session.mode, available_modes=[*_MODES])


def _describe_options(session: _Session) -> list[Any]:
    # Of the protocol's list of any kinds of options; lists are invariant.
    levels = [SessionConfigSelectOption(value=one, name=one.capitalize()) for one in _LEVELS]
    effort = SessionConfigOptionSelect(
        type="select",
        id=_EFFORT,
        name="Effort",
        description="How much the models reason.",
        category="thought_level",
        current_value=session.effort or _NO_EFFORT,
        options=levels,
    )
    return [effort]


async def _submit(service: Service, session: _Session, message: Any, reader: PromptReader) -> AcceptedRun:
    thread_id = await resolve_thread_id(service.store, session.session_id, "")
    await store_files(service, "", thread_id, reader.files)
    options = RunOptions(auto_accepted_plan=session.mode != _REVIEW, effort=session.effort)
    return await service.engine.submit(RunRequest([message], thread_id, options, when_busy="steer"))


async def _follow(session: _Session) -> FollowedRun:
    """Follow the run of a session to its end, then the run that a message became which came too late for it.

    Return the last one.
    """
    while True:
        followed = session.followed
        assert followed is not None  # the caller has set it
        run = await followed.follow()
        next_run_id = followed.updates.next_run_id
        if not next_run_id or session.is_cancelled:
            return followed
        service = followed.service
        run = await service.engine.status(next_run_id, run.owner)
        session.followed = FollowedRun(service, followed.client, followed.requests, session.session_id, run)


async def _cancel_run(followed: FollowedRun) -> None:
    followed.stop_asking()
    await followed.service.engine.cancel(followed.run.run_id, followed.run.owner)


def _end_turn(session: _Session, followed: FollowedRun) -> PromptResponse:
    """Return how a turn ends; raises `RequestError` for a run without an answer, and `ServiceStopping`."""
    run = followed.run
    if session.is_cancelled:
        return PromptResponse(stop_reason="cancelled")
    if run.is_unfinished:
        raise ServiceStopping("maniple is stopping. The run goes on at the next start; load the session.")
    if run.status == "failed" and not followed.updates.has_answer:
        raise RequestError(-32603, run.error or "The run failed.", {"code": run.error_code or "internal"})
    return PromptResponse(stop_reason=_STOP_REASONS.get(run.status, "end_turn"))


async def _stop_following(session: _Session) -> None:
    if (following := session.following) is not None:
        following.cancel()
        await asyncio.wait((following,))
        session.following = None


async def _follow_in_background(session: _Session) -> None:
    """Send what a loaded session's run does before the next prompt."""
    try:
        await (await _follow(session)).send_failure()
    except (ManipleError, ConnectionError) as error:
        _LOG.info("The session %s is not followed any more: %s", session.session_id, error)


async def _replay(followed: FollowedRun, *, is_first: bool) -> None:
    """Send a run as its user saw it, with the question; one that was undone is left out.

    The first run of a thread may have the history of a conversation.
    """
    run, updates = followed.run, followed.updates
    if run.status == "cancelled" and (await read_ended_run(followed.service.store, run)).is_undone:
        return
    messages = RunRequest.of(run).messages
    for message in messages if is_first else messages[-1:]:
        is_team = message.type == "ai"
        for update in [updates.say(message.text)] if is_team else updates.hear(message.text):
            await followed.send(update)
    await followed.replay()


async def serve_acp(settings: Settings, progress: Progress) -> None:
    """Serve the editor until the input ends or SIGINT, SIGTERM or SIGHUP arrives.

    Runs in progress stop at a checkpoint and continue when the team is served again. If the team cannot be
    opened, each prompt returns the `ManipleError`, which is raised at the end.
    """
    async with own_pipes(_NO_EDITOR) as (reader, writer), open_in_background(settings, progress) as opened:
        requests = OpenRequests(writer)
        agent = cast("Agent", TeamAgent(opened, requests))
        connection = AgentSideConnection(agent, writer, reader, listening=False, observers=[requests.observe])
        try:
            await until_signal(asyncio.create_task(connection.listen(), name="acp"))
        finally:
            await connection.close()
