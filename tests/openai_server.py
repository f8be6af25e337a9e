"""A deterministic, scripted OpenAI-compatible chat server for tests and benchmarks. Loopback only.

In a thread: `with serving(script) as server: server.base_url, server.requests`.
As a process: `python -m tests.openai_server --port 0 --script FILE.json` prints its base URL on one line.

A script maps a role to its replies in order; each conversation has its own counters, and the last reply
repeats. The role is what a prompt says after "You are the", else "other"; the conversation is the word after
`#run=`, else "". The key `reject` lists request fields that get a 400; with `by_history` the turn is what
the request's own messages say (one more than the answers among them), so that a call asked for again gets the
same reply again. An argument `index of NAME` becomes the number of that control in what is shown last.
A reply is a dict of any of:
    text             content, sent in word-sized pieces; `{run}` is the conversation, anywhere in a reply
    chunks           content, sent in exactly these pieces
    reasoning        str or list of str, sent as `reasoning_content` before the content
    tool_calls       list of {name, arguments}; arguments that are a str are sent as they are, even broken
    finish_reason    instead of "stop" or "tool_calls"
    usage            False: send none
    delay_seconds    pause before every piece but the first, and before an answer in one body
    status           answer with this HTTP status and an error body; `error` (message), `code`, `headers`
    hang             True: do not answer before `release()`
    hang_after       send so many pieces, and nothing more before `release()`
    cut_after        drop the connection after so many pieces, or early in an answer in one body
    malformed_after  send what is no JSON after so many pieces, or early in an answer in one body
    error_after      send a chunk with the reply's `error` (a dict) after so many pieces, or as the one body
    times            use this reply so many times before the next one
    about            only for requests with this text, such as those of one of several concurrent steps
    raw              the body, byte for byte (`surrogateescape` where it is no UTF-8), beside which only
                     `status`, `headers` and `times` count; `is_cut` drops the connection at its end;
                     it goes in pieces of `piece_bytes`
Also: GET /v1/models, /admin/stats, /admin/requests; POST /admin/reset, whose body replaces the script.
"""

import argparse
import asyncio
import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse

Json = dict[str, Any]
_CJK = "\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_PIECE = re.compile(rf"[{_CJK}]|\s*[^\s{_CJK}]+|\s+")
_ROLE = re.compile(r"You are (?:the )?((?<=the )\w+(?: manager)?|manus)")
_RUN = re.compile(r"#run=(\w+)")
_INDEX_OF = re.compile(r'"index of ([^"]+)"')


def words(count: int) -> list[str]:
    """Return pieces of a report that is shown word by word: with digits a paragraph is shown when it ends."""
    letters = str.maketrans("0123456789", "abcdefghij")
    return [f"w{number} ".translate(letters) for number in range(count)]


def reply(text: str, **options: Any) -> Json:
    """A reply of text; `options` are the other keys of a reply."""
    return {"text": text, **options}


def call(name: str, **arguments: Any) -> Json:
    """A reply of one tool call."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


_COMPUTE = {"agent_name": "coder", "title": "Compute", "description": "Compute 1 + 3 with Python."}
_REPORT = {"agent_name": "reporter", "title": "Report", "description": "Report the result."}
_PLAN = {"thought": "A sum is asked for.", "title": "1 + 3", "steps": [_COMPUTE, _REPORT]}
SIMPLE: Json = {
    "coordinator": [call("handoff_to_planner")],
    "planner": [reply(json.dumps(_PLAN))],
    "coder": [call("python_repl_tool", code="print(1+3)"), reply("1 + 3 = 4")],
    "reporter": [reply("# What is 1 + 3?\n\nThe answer is **4**.\n")],
    "other": [reply("OK")],
}
BRIEF: Json = {**SIMPLE, "planner": [{"chunks": [json.dumps(_PLAN)]}]}
"""The same with a plan in one piece: for tests of many runs."""


def _index_of(shown: str, wanted: re.Match[str]) -> str:
    """The number in brackets of the first control in a view of the browser that has this name."""
    found = re.search(rf"\[(\d+)\]<[^\]\n]*{re.escape(wanted[1])}", shown)
    return found[1] if found else "99999"


def fill_indices(reply: str, messages: list[Json]) -> str:
    """Return a reply's JSON with the numbers of the controls that it names, as shown in the last message."""
    return _INDEX_OF.sub(partial(_index_of, _text(messages[-1])), reply)


def approximate_tokens(text: str) -> int:
    """One token per CJK character and one per four other characters, rounded up."""
    others = len(re.sub(f"[{_CJK}]", "", text))
    return len(text) - others + -(-others // 4)


def _text(message: Json) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def role_and_run(messages: list[Json]) -> tuple[str, str]:
    prompts = [message for message in messages if message["role"] in ("system", "developer", "user")]
    roles = (match[1] for message in prompts if (match := _ROLE.search(_text(message))))
    runs = (match[1] for message in messages if (match := _RUN.search(_text(message))))
    return next(roles, "other").lower().replace(" ", "_"), next(runs, "")


def _pieces(text: str | list[str]) -> list[str]:
    return _PIECE.findall(text) if isinstance(text, str) else text


def _function(tool_call: Json) -> Json:
    arguments = tool_call["arguments"]
    return tool_call | {"arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)}


def build_completion(reply: Json, name: str, body: Json) -> tuple[Json, Json]:
    """The answer in one body, with usage if that is wanted, and the usage in any case."""
    functions = [_function(tool_call) for tool_call in reply.get("tool_calls", [])]
    calls = [
        {"id": f.pop("id", f"call_{name}_{i}"), "type": "function", "function": f}
        for i, f in enumerate(functions)
    ]
    reasoning = "".join(reply.get("reasoning", ""))
    content = "".join(reply.get("chunks", reply.get("text", "")))
    message = {"role": "assistant", "content": content or None, "reasoning_content": reasoning or None}
    finish_reason = reply.get("finish_reason", "tool_calls" if calls else "stop")
    choice = {"index": 0, "message": message | {"tool_calls": calls or None}, "finish_reason": finish_reason}
    tools = len(json.dumps(body["tools"], ensure_ascii=False)) if body.get("tools") else 0
    prompt = sum(approximate_tokens(_text(sent)) + 4 for sent in body["messages"]) + -(-tools // 4)
    said = approximate_tokens(reasoning + content + "".join(f["name"] + f["arguments"] for f in functions))
    usage = {"prompt_tokens": prompt, "completion_tokens": said, "total_tokens": prompt + said}
    head = {"id": f"chatcmpl-{name}", "object": "chat.completion", "created": 0, "model": body.get("model")}
    asked = not body.get("stream") or (body.get("stream_options") or {}).get("include_usage")
    wanted = reply.get("usage", True)
    shown = (wanted if isinstance(wanted, dict) else usage) if asked and wanted else None
    return {**head, "choices": [choice], "usage": shown}, usage


def build_stream(completion: Json, reply: Json) -> list[bytes]:
    """The same answer as events: the role, the pieces, the ending."""
    choice = completion["choices"][0]
    deltas: list[Json] = [{"role": "assistant"}]
    deltas += [{"reasoning_content": piece} for piece in _pieces(reply.get("reasoning", ""))]
    deltas += [{"content": piece} for piece in _pieces(reply.get("chunks", reply.get("text", "")))]
    for index, call in enumerate(choice["message"]["tool_calls"] or []):
        name, arguments = call["function"]["name"], _pieces(call["function"]["arguments"])
        deltas.append({"tool_calls": [{"index": index, **call, "function": {"name": name, "arguments": ""}}]})
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": part}}]} for part in arguments]

    def event(choices: list[Json], usage: Json | None = None) -> bytes:
        chunk = {**completion, "object": "chat.completion.chunk", "choices": choices, "usage": usage}
        return b"data: " + _json(chunk) + b"\n\n"

    pieces = [event([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    ending = event([{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}])
    usage = event([], completion["usage"]) if completion["usage"] else b""
    return [*pieces, ending + usage + b"data: [DONE]\n\n"]


def _json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False)
    # Half a character goes as its escape, as some endpoints send it.
    return (text if text.isascii() or _is_whole(text) else json.dumps(value)).encode()


def _is_whole(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _error(message: str, status: int, code: str | None = None, headers: Json | None = None) -> JSONResponse:
    error = {"message": message, "type": "scripted_error", "param": None, "code": code}
    return JSONResponse({"error": error}, status, headers)


async def _send_error(reply: Json, request: Request, send: Any) -> None:
    message = reply.get("error", "A scripted error.")
    response = _error(message, reply["status"], reply.get("code"), reply.get("headers"))
    await response(request.scope, request.receive, send)


async def _send_raw(reply: Json, send: Any) -> None:
    body, size = encode_raw(reply["raw"]), reply.get("piece_bytes", 1 << 20)
    headers = {"content-type": "text/event-stream", **reply.get("headers", {})}
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": reply.get("status", 200), "headers": encoded})
    for at in range(0, len(body), size):
        await send({"type": "http.response.body", "body": body[at : at + size], "more_body": True})
    if not reply.get("is_cut"):
        await send({"type": "http.response.body", "body": b""})


def encode_raw(text: str) -> bytes:
    """Return the bytes of a raw reply."""
    return text.encode("utf-8", "surrogateescape")


class OpenAIServer:
    """The ASGI application; `requests` are the parsed bodies of the chat requests in order of arrival.

    `begun` are the times (`time.perf_counter`) at which answers began, in their order. `refuse` returns why
    the body of a request gets a 400, or the reply that it gets instead of the script's, "" if it gets that.
    """

    refuse: Callable[[Json], str | Json] = staticmethod(lambda body: "")

    def __init__(self, script: Json, base_url: str) -> None:
        self.base_url = base_url
        self._changed = threading.Condition()
        self._stats: Json = {"active": 0}
        self.reset(script)

    def reset(self, script: Json | None = None) -> None:
        """Forget requests, totals and how far each conversation is; a `script` replaces the present one."""
        with self._changed:
            self._script = script or self._script
            self._turns: Counter[tuple[str, str]] = Counter()
            self.requests: list[Json] = []
            self.begun: list[float] = []
            self._hanging: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
            self._waiting: set[asyncio.Event] = set()
            totals = dict.fromkeys(("calls", "prompt_tokens", "completion_tokens", "aborted"), 0)
            active = self._stats["active"]
            self._stats = {**totals, "active": active, "max_active": active, "by_role": Counter()}

    @property
    def stats(self) -> Json:
        """Calls, tokens, aborted calls, calls active now and at most, and calls by role."""
        with self._changed:
            return {**self._stats, "by_role": dict(self._stats["by_role"])}

    def wait_for(self, condition: Callable[[Json], bool], timeout_seconds: float = 60.0) -> None:
        """Block until `condition(stats)` holds or raise TimeoutError. In async code: `asyncio.to_thread`."""
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self._stats), timeout_seconds):
                raise TimeoutError(f"The scripted server is still at {self._stats}.")

    def release(self, timeout_seconds: float = 60.0) -> None:
        """Let every answer whose request has arrived go on, from any thread.

        Blocks until one hangs, because on a loaded machine its request may arrive later than the caller sees
        what comes before it. Raises TimeoutError if none does.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting, timeout_seconds):
                raise TimeoutError(f"No answer hangs that could be released; the server is at {self._stats}.")
            hanging, self._hanging = self._hanging, []
            self._waiting = set()
        for loop, released in hanging:
            loop.call_soon_threadsafe(released.set)

    def _count(self, role: str | None = None, **totals: int) -> None:
        with self._changed:
            for name, increment in totals.items():
                self._stats[name] += increment
            self._stats["max_active"] = max(self._stats["max_active"], self._stats["active"])
            self._stats["by_role"].update([role] if role else [])
            self._changed.notify_all()

    async def _hang(self, released: asyncio.Event) -> None:
        with self._changed:
            if not released.is_set():
                self._waiting.add(released)
            self._changed.notify_all()
        try:
            await released.wait()
        finally:
            with self._changed:
                self._waiting.discard(released)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request, route = Request(scope, receive), f"{scope['method']} {scope['path'].removeprefix('/v1')}"
        if route == "POST /chat/completions":
            return await self._chat(request, send)
        if route == "POST /admin/reset":
            self.reset(json.loads(await request.body() or b"null"))
        pages: dict[str, Any] = {
            "GET /models": {"object": "list", "data": [{"id": "scripted", "object": "model"}]},
            "GET /admin/stats": self.stats,
            "GET /admin/requests": self.requests,
            "POST /admin/reset": self.stats,
        }
        known = route in pages
        response = JSONResponse(pages[route]) if known else _error(f"There is no {route} here.", 404)
        await response(scope, receive, send)

    async def _chat(self, request: Request, send: Any) -> None:
        body = await request.json()
        self.requests.append(body)
        released = asyncio.Event()
        with self._changed:  # before it is counted, so that who waits for the count can release it
            self._hanging.append((asyncio.get_running_loop(), released))
        due = self._next_reply(body)  # before it is counted, too: who has waited for it may change the script
        with ExitStack() as active:
            self._count(role=role_and_run(body["messages"])[0], calls=1, active=1)
            active.callback(self._count, active=-1)
            answer = asyncio.create_task(self._answer(request, body, send, released, active.close, due))
            departure = asyncio.ensure_future(request.receive())
            try:
                await asyncio.wait({answer, departure}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                aborted = answer.cancel()
                departure.cancel()
                await asyncio.gather(answer, departure, return_exceptions=True)
        if aborted:
            self._count(aborted=1)
        else:
            answer.result()

    def _next_reply(self, body: Json) -> tuple[Json, str]:
        """The reply that is due, and a name for it that is unique in the conversation."""
        role, run = role_and_run(body["messages"])
        refused = next((field for field in self._script.get("reject", []) if field in body), None)
        if refused:
            return {"status": 400, "error": f"{refused} is not supported by this server."}, ""
        if why := self.refuse(body):
            return ({"status": 400, "error": why} if isinstance(why, str) else why), ""
        if role not in self._script:
            return {"status": 400, "error": f"The script has no replies for the role {role}."}, ""
        turn = self._turns[run, role]
        self._turns[run, role] += 1
        if self._script.get("by_history"):
            turn = sum(message["role"] == "assistant" for message in body["messages"])
        shown = "\n".join(map(_text, body["messages"]))
        fitting = (one for one in self._script[role] if one.get("about", "") in shown)
        replies = [reply for reply in fitting for _ in range(reply.get("times", 1))]
        due = json.dumps(replies[min(turn, len(replies) - 1)])
        return json.loads(fill_indices(due.replace("{run}", run), body["messages"])), f"{run}_{role}_{turn}"

    async def _answer(
        self,
        request: Request,
        body: Json,
        send: Any,
        released: asyncio.Event,
        done: Callable[[], None],
        due: tuple[Json, str],
    ) -> None:
        """Send the reply; `done` is called before its last bytes, so whoever has them finds final stats."""
        reply, name = due
        if reply.get("hang"):
            await self._hang(released)
        if "raw" in reply or "status" in reply:
            done()
            return await (_send_raw(reply, send) if "raw" in reply else _send_error(reply, request, send))
        completion, usage = build_completion(reply, name, body)
        self._count(prompt_tokens=usage["prompt_tokens"])
        stream = body.get("stream", False)
        headers = [(b"content-type", b"text/event-stream" if stream else b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        # An answer in one body goes in two parts too, so that it can be cut and malformed in between.
        *parts, ending = build_stream(completion, reply) if stream else (b"{", _json(completion)[1:])
        if "malformed_after" in reply:
            parts[min(reply["malformed_after"], len(parts) - 1)] += b"data: {not json\n\n"
        if "error_after" in reply:
            told = _json({"error": reply["error"]})
            parts, ending = (parts[: reply["error_after"]], b"data: %b\n\n" % told) if stream else ([], told)
        self.begun.append(time.perf_counter())
        for index, part in enumerate(parts[: reply.get("cut_after", len(parts)) + 1]):
            await asyncio.sleep(reply.get("delay_seconds", 0) if index > 1 or not stream else 0)
            await send({"type": "http.response.body", "body": part, "more_body": True})
            if index == reply.get("hang_after"):
                await self._hang(released)
        self._count(completion_tokens=usage["completion_tokens"])
        done()
        if "cut_after" not in reply:  # a body left open makes uvicorn drop the connection
            await send({"type": "http.response.body", "body": ending})


class _PromptServer(uvicorn.Server):
    """Stops immediately on request; uvicorn's own server polls every 0.1 s."""

    _ended: asyncio.Event | None = None

    def end(self) -> None:
        """Tell it, from any thread."""
        self.should_exit = True
        if self._ended:
            self._loop.call_soon_threadsafe(self._ended.set)

    async def main_loop(self) -> None:
        await self.on_tick(0)  # makes the headers
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        if not self.should_exit:
            await self._ended.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for one in (*self.servers, *(sockets or [])):
            one.close()
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        if tasks := set(state.tasks):
            _, late = await asyncio.wait(tasks, timeout=self.config.timeout_graceful_shutdown)
            for task in late:
                task.cancel()
            await asyncio.wait(tasks)
        for connection in list(state.connections):
            connection.transport.abort()  # type: ignore[union-attr]
        await asyncio.sleep(0)  # so that they hear of it


def _bind(script: Json, port: int) -> tuple[OpenAIServer, uvicorn.Config, socket.socket]:
    # Listening before the loop runs makes the URL good at once: early clients wait in the backlog.
    listener = socket.create_server(("127.0.0.1", port), backlog=512)
    app = OpenAIServer(script, f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
    options: Json = {"lifespan": "off", "ws": "none", "log_config": None, "timeout_graceful_shutdown": 1}
    return app, uvicorn.Config(app, access_log=False, **options), listener


@contextmanager
def serving(script: Json, port: int = 0) -> Iterator[OpenAIServer]:
    """Serve `script`, as a rule on a free port, from a thread, which has ended when the context is left."""
    app, config, listener = _bind(script, port)
    server = _PromptServer(config)
    thread = threading.Thread(target=server.run, args=([listener],), name="openai-server")
    thread.start()
    try:
        yield app
    finally:
        server.end()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted OpenAI-compatible chat server.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, help="a JSON file; without it, the script SIMPLE")
    arguments = parser.parse_args()
    script = json.loads(arguments.script.read_text()) if arguments.script else SIMPLE
    app, config, listener = _bind(script, arguments.port)
    print(app.base_url, flush=True)
    uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
