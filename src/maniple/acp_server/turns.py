"""Following a run for an editor: its updates, and the decisions that it asks the user for."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from acp import RequestError, resource_link_block, text_block, tool_content, update_agent_message
from acp.helpers import SessionUpdate
from acp.interfaces import Client
from acp.schema import (
    AllowedOutcome,
    PermissionOption,
    PermissionOptionKind,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from maniple.acp_server.open_requests import OpenRequests
from maniple.acp_server.updates import SessionUpdates, describe_call
from maniple.errors import ManipleError
from maniple.events import RunInterrupted, describe_question
from maniple.run_files.listing import read_run_files
from maniple.run_files.pictures import FigureFinder
from maniple.runs import RunNotWaiting
from maniple.service import Service
from maniple.store import EventRecord, RunRecord, read_event_pages

LOOK_SECONDS = 1.0
"""How often a run that waits for the editor's user is read: it may be answered elsewhere."""
WRITTEN = "written"
"""The option with which the user decides by the next message, such as an edit."""
_LOG = logging.getLogger(__name__)
Decisions = Mapping[str, tuple[str, PermissionOptionKind, Any]]
"""By the option's id: what the user sees, its kind, and the answer as the engine takes it."""
_APPROVAL: Decisions = {
    "allow": ("Allow", "allow_once", {"type": "approve"}),
    "always": ("Allow its like for this run", "allow_always", {"type": "approve", "always": True}),
    "reject": ("Reject", "reject_once", {"type": "reject"}),
    WRITTEN: ("Edit: write the arguments as JSON", "reject_once", None),
}
_UNKNOWN_RESULT: Decisions = {
    "again": ("Run it again", "allow_once", {"type": "run again"}),
    "skip": ("Skip it", "reject_once", {"type": "skip"}),
    WRITTEN: ("Write what its result was", "reject_once", None),
}
_PLAN: Decisions = {
    "accept": ("Accept the plan", "allow_once", {"type": "accept"}),
    WRITTEN: ("Write what to change", "reject_once", None),
}
_HOW: Mapping[str, str] = {
    "plan_review": "Write `accept`, or what to change in the plan.",
    "tool_approval": "",
}


@dataclass(slots=True)
class FollowedRun:
    """A run whose updates go to a session, from its event after number `after`."""

    service: Service
    client: Client
    requests: OpenRequests
    session_id: str
    run: RunRecord
    after: int = 0
    updates: SessionUpdates = field(default_factory=SessionUpdates)
    _asking: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, "asyncio.Task[None]"])
    _undecided: set[str] = field(default_factory=set[str])
    """The interrupt ids of the requests that the editor has not answered."""

    @property
    def is_open(self) -> bool:
        """Whether the run works, is queued or waits for an answer."""
        return self.run.is_unfinished or self.run.status == "interrupted"

    async def replay(self) -> None:
        """Send what the run has stored so far."""
        async for page in read_event_pages(self.service.store.events, self.run.run_id, self.after):
            for record in page:
                await self._send_all(record)
        for update in self.updates.end_replay():
            await self.send(update)
        await self.send_failure()
        await self.send_files()

    async def follow(self) -> RunRecord:
        """Send updates and ask for decisions until the run ends, or waits for what the user writes.

        What is decided elsewhere meanwhile, such as on the page, is taken back from the editor.
        Raises the errors of `Engine.events`.
        """
        self._asking.clear()
        self._undecided.clear()
        try:
            self._ask_open()
            while True:
                events = self.service.engine.events(self.run.run_id, self.after)
                async with aclosing(self.service.key_watch.pages(self.run.owner, events)) as pages:
                    async for page in pages:
                        for record in page:
                            await self._send_all(record)
                        await self._take_back_decided()
                        self._ask_open()
                self.run = await self.service.engine.status(self.run.run_id, self.run.owner)
                if self.run.status != "interrupted" or not await self._wait_for_decision():
                    break
        finally:
            self.stop_asking()
        await self.send_files()
        return self.run

    def stop_asking(self) -> None:
        """Take back from the editor what its user has not decided; the run still waits for it."""
        for name in self._undecided:
            self._asking[name].cancel()

    async def send(self, update: SessionUpdate) -> None:
        """Send one update."""
        await self.client.session_update(session_id=self.session_id, update=update)

    async def send_failure(self) -> None:
        """Send the error of a run that has ended without an answer."""
        if self.run.status == "failed" and not self.updates.has_answer:
            await self.send(self.updates.say(self.run.error or "The run failed."))

    async def send_files(self) -> None:
        """Link to the files that a run which has ended has made."""
        if self.is_open:
            return
        folder = self.service.workspaces.locate(self.run.thread_id).path
        async for file in read_run_files(FigureFinder(self.service.store, self.service.workspaces, self.run)):
            path = folder / file.path
            if await asyncio.to_thread(path.is_file):
                link = resource_link_block(file.path, path.resolve().as_uri())
                await self.send(update_agent_message(link))

    async def _send_all(self, record: EventRecord) -> None:
        for update in self.updates.feed(record):
            await self.send(update)
        self.after = record.number

    def _ask_open(self) -> None:
        """Ask the user for each decision that the run waits for and that was not asked for yet."""
        for name, pause in self.updates.pauses.items():
            if pause.kind != "question" and name not in self._asking:
                self._asking[name] = asyncio.create_task(self._ask(pause), name=f"ask for {name}")

    async def _take_back_decided(self) -> None:
        """Take back from the editor what was decided elsewhere."""
        for name in [name for name in self._undecided if name not in self.updates.pauses]:
            self._asking[name].cancel()
            await asyncio.wait((self._asking[name],))

    async def _wait_for_decision(self) -> bool:
        """Wait for the next decision, or a moment; return False if none is left to wait for."""
        asking = {name: self._asking[name] for name in self.updates.pauses if name in self._asking}
        if not asking:
            return False
        done, _ = await asyncio.wait(
            asking.values(), timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        for name, task in asking.items():
            if task in done:
                del self.updates.pauses[name]
        return True

    async def _ask(self, pause: RunInterrupted) -> None:
        """Resume the run as the editor's user decides, unless that is left to the next message."""
        decisions = _decisions_of(pause)
        options = [
            PermissionOption(option_id=name, name=label, kind=kind)
            for name, (label, kind, _) in decisions.items()
        ]
        given = await self._request(pause, options)
        chosen = given.outcome.option_id if given and isinstance(given.outcome, AllowedOutcome) else WRITTEN
        _, _, answer = decisions.get(chosen, ("", "", None))
        if answer is None:
            await self.send(self.updates.say(_describe_open(pause)))
            return
        try:
            await self.service.engine.resume(
                self.run.run_id, answer, interrupt_id=pause.interrupt_id, owner=self.run.owner
            )
        except RunNotWaiting:
            pass  # it was answered elsewhere
        except ManipleError as error:
            await self.send(self.updates.say(f"The answer was not taken: {error}"))

    async def _request(
        self, pause: RunInterrupted, options: list[PermissionOption]
    ) -> RequestPermissionResponse | None:
        """Return the editor's answer; None if it does not ask. A request that is cancelled is taken back."""
        call = _describe_pause(pause)
        self._undecided.add(pause.interrupt_id)
        try:
            return await self.client.request_permission(
                session_id=self.session_id, tool_call=call, options=options
            )
        except RequestError as error:
            _LOG.info("The editor did not ask its user: %s", error)
            return None
        except asyncio.CancelledError:
            self.requests.take_back(self.session_id, call.tool_call_id)
            raise
        finally:
            self._undecided.discard(pause.interrupt_id)


def _decisions_of(pause: RunInterrupted) -> Decisions:
    if pause.kind == "plan_review":
        return _PLAN
    return _UNKNOWN_RESULT if pause.payload.get("reason") == "unknown_result" else _APPROVAL


def _describe_open(pause: RunInterrupted) -> str:
    return "\n\n".join(filter(None, (describe_question(pause), _HOW.get(pause.kind, ""))))


def _as_content(text: str) -> list[Any]:
    # Of the protocol's list of any kinds of content; lists are invariant.
    return [tool_content(text_block(text))]


def _describe_pause(pause: RunInterrupted) -> ToolCallUpdate:
    """Return the call that needs a decision; a plan is shown as one."""
    if pause.kind == "plan_review":
        plan: dict[str, Any] = pause.payload.get("plan") or {}
        lines = [
            f"{number}. {step.get('title')} ({step.get('agent_name')}): {step.get('description', '')}"
            for number, step in enumerate(plan.get("steps") or (), start=1)
        ]
        return ToolCallUpdate(
            tool_call_id=pause.interrupt_id,
            title=f"Review the plan: {plan.get('title', '')}",
            kind="switch_mode",
            status="pending",
            content=_as_content("\n".join(lines)),
        )
    name, arguments = str(pause.payload.get("tool_name") or "a tool"), pause.payload.get("tool_input") or {}
    return ToolCallUpdate(
        tool_call_id=str(pause.payload.get("tool_call_id") or pause.interrupt_id),
        title=describe_call(name, arguments),
        status="pending",
        content=_as_content(describe_question(pause)),
        raw_input=arguments,
    )
