"""OpenAI's Responses over a WebSocket: several responses in turn, with the requests and the events of HTTP.

Source: https://developers.openai.com/api/docs/guides/websocket-mode and
https://www.openresponses.org/specification#websocket-transport
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from pydantic import ValidationError
from starlette.responses import JSONResponse
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from maniple.api.not_used import describe_not_used
from maniple.api.protocols.conversations import AnsweredRuns
from maniple.api.protocols.openai_errors import UnsupportedParameter, describe_error, error_body
from maniple.api.protocols.responses_desk import AskedResponse, ResponseDesk, make_previous_missing
from maniple.api.protocols.responses_request import ResponseBody
from maniple.api.protocols.responses_view import Json, ResponseView
from maniple.api.sse import SEND_SECONDS
from maniple.errors import ManipleError
from maniple.runs import NotFound
from maniple.service import Service
from maniple.service.callers import Caller, KeyRevoked
from maniple.service.deletion import delete_conversation

PATH = "/v1/responses"
MAX_SOCKETS = 100
"""Open sockets of one API key, or of all clients without one, in this process."""
MAX_QUEUED = 8
"""Requests of a socket that wait for the end of the response before them."""
MAX_UNSTORED = 16
"""Conversations of a socket that are not stored; one more takes the place of the oldest."""
SOCKET_SECONDS = 3_600.0
"""After this time a socket begins no response; one at work is sent to its end."""
_POLICY_VIOLATION = 1008
_TRY_AGAIN = 1013
_LOG = logging.getLogger(__name__)
_FindCaller = Callable[[], Awaitable[Caller | None]]


class SocketRequest(ResponseBody):
    """A message of the client: the body of a request over HTTP, and its type."""

    type: Literal["response.create"]
    store: bool | None = None
    generate: Literal[True] | None = None

    @property
    def is_stored(self) -> bool:
        """See `ResponseBody`. False: the conversation is deleted with its socket."""
        return self.store is not False


@dataclass(slots=True)
class OpenSockets:
    """The number of open sockets of each API key."""

    _counts: Counter[str] = field(default_factory=Counter[str])

    @contextmanager
    def place(self, owner: str) -> Generator[bool]:
        """Take a place for the time of this context; False if there is none."""
        if self._counts[owner] >= MAX_SOCKETS:
            yield False
            return
        self._counts[owner] += 1
        try:
            yield True
        finally:
            self._counts[owner] -= 1
            self._counts += Counter()  # without those that are 0


async def serve_socket(socket: WebSocket) -> None:
    """Serve a client until it leaves. Its runs go on; those that are not stored end with the socket."""
    state = socket.app.state
    caller: Caller = socket.state.caller
    sockets: OpenSockets = state.response_sockets
    with sockets.place(caller.owner) as has_place:
        if not has_place:
            message = (
                f"This key has {MAX_SOCKETS} open WebSockets. Close one, or use it for the next request."
            )
            refusal = error_body(message, "too_many_sockets", 429)
            await socket.send_denial_response(JSONResponse(refusal, status_code=429))
            return
        unused = describe_not_used([*dict.fromkeys(socket.query_params)])
        await socket.accept(headers=[(name.encode(), value.encode()) for name, value in unused.items()])
        serving = ResponseSocket(socket, state.service, caller, state.answered_runs, socket.state.find_caller)
        with suppress(WebSocketDisconnect):
            await serving.serve()


@dataclass(slots=True)
class ResponseSocket:
    """An accepted socket. It answers one request at a time."""

    socket: WebSocket
    service: Service
    caller: Caller
    answered: AnsweredRuns
    find_caller: _FindCaller
    """Checks the key of the socket again."""
    _unstored: dict[str, str] = field(default_factory=dict[str, str])
    """The threads of the responses that are not stored, by the ids of these, oldest first."""

    async def serve(self) -> None:
        """Answer until the client leaves, breaks a rule, or the time of the socket is over."""
        waiting: asyncio.Queue[str | bytes] = asyncio.Queue(MAX_QUEUED)
        tasks = (asyncio.create_task(self._read(waiting)), asyncio.create_task(self._answer_all(waiting)))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for thread_id in dict.fromkeys(self._unstored.values()):
                await self._delete(thread_id)

    async def _read(self, waiting: asyncio.Queue[str | bytes]) -> None:
        """Put the messages of the client into a queue until it leaves."""
        while (message := await self.socket.receive())["type"] != "websocket.disconnect":
            text: str | bytes | None = message.get("text")
            try:
                waiting.put_nowait(message.get("bytes") or b"" if text is None else text)
            except asyncio.QueueFull:
                reason = f"At most {MAX_QUEUED} requests wait. Send the next one after a response."
                await self.socket.close(_POLICY_VIOLATION, reason)
                return

    async def _answer_all(self, waiting: asyncio.Queue[str | bytes]) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SOCKET_SECONDS
        while self.socket.application_state is WebSocketState.CONNECTED:
            try:
                text = await asyncio.wait_for(waiting.get(), deadline - loop.time())
            except TimeoutError:
                message = f"A WebSocket serves for {SOCKET_SECONDS / 60:g} minutes. Open a new one."
                await self._send_error(error_body(message, "websocket_connection_limit_reached", 400), 400)
                await self.socket.close(_TRY_AGAIN)
                return
            await self._answer(text)

    async def _answer(self, text: str | bytes) -> None:
        """Answer one message with the events of a response, or with an error."""
        number: int | None = None
        touched: list[str | None] = []
        try:
            if await self.find_caller() != self.caller:
                raise KeyRevoked("The API key of this WebSocket was revoked, or one is needed now.")
            data = _parse_message(text)
            touched.append(data.get("previous_response_id"))
            asked = await self._accept(SocketRequest.model_validate(data))
            touched.append(str(asked.name))
            with self.answered.answering(asked.run.run_id):
                async with aclosing(asked.deliver(ResponseView(asked.name, asked.base))) as events:
                    async for event in events:
                        number = event["sequence_number"]
                        await self._send(event)
        except (ManipleError, UnsupportedParameter, ValidationError) as error:
            # In this order: a request that follows the error must not find what it has removed.
            for response_id in touched:
                await self._evict(response_id)
            await self._send_error(*describe_error(error), number)
            if isinstance(error, KeyRevoked):
                await self.socket.close(_POLICY_VIOLATION)

    async def _accept(self, body: SocketRequest) -> AskedResponse:
        if body.background:
            raise UnsupportedParameter(
                "background", "A WebSocket streams each response, and the run goes on without it."
            )
        desk = ResponseDesk(self.service, self.caller.owner, self.answered)
        if body.is_stored:
            return await desk.accept(body, await desk.find_previous(body))
        thread_id = None
        if body.previous_response_id and not (thread_id := self._unstored.get(body.previous_response_id)):
            raise make_previous_missing()
        asked = await desk.accept(body, thread_id)
        self._unstored[str(asked.name)] = asked.run.thread_id
        if len({*self._unstored.values()}) > MAX_UNSTORED:
            await self._evict(next(iter(self._unstored)))
        return asked

    async def _evict(self, response_id: str | None) -> None:
        """Delete the conversation of a response that is not stored; nothing for any other id."""
        thread_id = self._unstored.get(response_id) if isinstance(response_id, str) else None
        if thread_id is None:
            return
        self._unstored = {name: one for name, one in self._unstored.items() if one != thread_id}
        await self._delete(thread_id)

    async def _delete(self, thread_id: str) -> None:
        try:
            await delete_conversation(self.service, thread_id, self.caller.owner)
        except NotFound:
            pass
        except ManipleError as error:
            _LOG.warning("The unstored conversation %s could not be deleted: %s", thread_id, error)

    async def _send(self, event: Json) -> None:
        """Send an event; raises `WebSocketDisconnect` if the client has gone, or reads nothing."""
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await self.socket.send_text(json.dumps(event, ensure_ascii=False))
        except TimeoutError:
            _LOG.warning("A client read nothing for %s s; its WebSocket was ended.", SEND_SECONDS)
            raise WebSocketDisconnect from None

    async def _send_error(self, body: Json, status: int, number: int | None = None) -> None:
        """Send the error of a request, with the number after `number` if it ends a response."""
        at = {} if number is None else {"sequence_number": number + 1}
        await self._send({"type": "error", "status": status, **body, **at})


def _parse_message(text: str | bytes) -> dict[str, Any]:
    """Return the object that a message is; raises `UnsupportedParameter`."""
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _invalid_message(f"The message is no JSON: {error}.") from error
    if not isinstance(data, dict):
        raise _invalid_message("The message must be an object of the type response.create.")
    return cast("dict[str, Any]", data)


def _invalid_message(message: str) -> UnsupportedParameter:
    return UnsupportedParameter("type", message, code="invalid_request")
