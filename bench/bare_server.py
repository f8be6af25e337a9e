"""Two servers that a run is measured beside: `python -m bench.bare_server bare|lean MODEL_URL [SITE_URL]`.

`bare` is LangGraph with ChatOpenAI, `astream_events` and FastAPI, without prompts, plans, checks or a store.
`lean` asks the model over plain sockets, without LangChain: about the least that Python needs. Both make the
calls of LangManus: the supervisor is a model. `bare` has asyncio's event loop, as `uvicorn` starts it, and
`lean` has uvloop.
"""

import argparse
import asyncio
import json
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI, Request
from langchain_core.tools import BaseTool, tool
from sse_starlette import EventSourceResponse
from starlette.responses import StreamingResponse

from bench.bare import open_bare_graph

TEAMS = {
    role: ("coordinator", "planner", "supervisor", role, "supervisor", "reporter", "supervisor")
    for role in ("coder", "researcher", "browser")
}
"""By the member that works: the roles in the order in which they are asked."""
Body = dict[str, Any]


@tool
async def python_repl_tool(code: str) -> str:
    """Run Python code."""
    return "4"


def web_tools(site: str) -> list[BaseTool]:
    """Return a search and a crawler without checks, extraction and cache."""
    import httpx

    client = httpx.AsyncClient()

    @tool
    async def tavily_search(query: str) -> str:
        """Search the web."""
        return (await client.get(f"{site}/search", params={"q": query, "format": "json"})).text

    @tool
    async def crawl_tool(url: str) -> str:
        """Read a page."""
        return (await client.get(url)).text

    return [tavily_search, crawl_tool]


@asynccontextmanager
async def open_browser_tool() -> AsyncIterator[BaseTool]:
    """Yield a tool that acts in a Chromium, and answers with the page's text and a picture of it."""
    from playwright.async_api import async_playwright

    from maniple.browser.launch import find_executable
    from maniple.config import BrowserSettings

    executable = find_executable(BrowserSettings())
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=str(executable), chromium_sandbox=False)
        page = await chromium.new_page()

        @tool
        async def browser_use(action: str, url: str = "", control: str = "", text: str = "") -> str:
            """Act in the browser."""
            if action == "go_to_url":
                await page.goto(url)
            elif action == "click_element":
                await page.get_by_role("button", name=control).click()
            else:
                await page.get_by_label(control).fill(text)
            picture = await page.screenshot(type="jpeg")
            return f"{await page.locator('body').aria_snapshot()}\n{len(picture)}"

        yield browser_use
        await chromium.close()


def bare_app(model_url: str, member: str, site: str) -> FastAPI:
    """Return the server on LangGraph."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            tools = [python_repl_tool]
            if member == "researcher":
                tools = web_tools(site)
            elif member == "browser":
                tools = [await stack.enter_async_context(open_browser_tool())]
            graph = open_bare_graph(model_url, {member: tools}, TEAMS[member])
            app.state.graph = await stack.enter_async_context(graph)
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/api/chat/stream")
    async def chat(request: Request) -> EventSourceResponse:
        messages = (await request.json())["messages"]
        return EventSourceResponse(_graph_events(app.state.graph, messages))

    return app


async def _graph_events(graph: Any, messages: list[Body]) -> AsyncIterator[Body]:
    async for event in graph.astream_events({"messages": messages}, version="v2"):
        kind, data = event["event"], event["data"]
        if kind == "on_chat_model_stream":
            yield _frame("message", {"delta": {"content": data["chunk"].text}})
        elif kind in {"on_chat_model_start", "on_tool_start", "on_chain_start"}:
            yield _frame(kind, {"name": event["name"]})
        elif kind == "on_tool_end":
            yield _frame(kind, {"result": data["output"].text})
    yield _frame("end_of_workflow", {})


def _frame(name: str, data: Body) -> Body:
    return {"event": name, "data": json.dumps(data)}


def lean_app(model_url: str, member: str) -> FastAPI:
    """Return the server on sockets."""
    app = FastAPI()

    @app.post("/api/chat/stream")
    async def chat(request: Request) -> StreamingResponse:
        messages = (await request.json())["messages"]
        events = _lean_events(model_url, TEAMS[member], messages)
        return StreamingResponse(events, media_type="text/event-stream")

    return app


async def _lean_events(model_url: str, roles: Sequence[str], messages: list[Body]) -> AsyncIterator[bytes]:
    text = ""
    for role in roles:
        asked = [{"role": "system", "content": f"You are the {role} of a team."}, *messages]
        wants_tool = True
        while wants_tool:
            text, wants_tool = "", False
            yield _encoded("start_of_llm", {"agent_name": role})
            async for deltas in _lean_answer(model_url, asked):
                piece = "".join(delta.get("content") or "" for delta in deltas)
                wants_tool |= role != "coordinator" and any("tool_calls" in delta for delta in deltas)
                if piece:
                    text += piece
                    yield _encoded("message", {"delta": {"content": piece}})
            if wants_tool:
                asked.append({"role": "user", "content": "4"})
        messages = [*messages, {"role": "user", "content": text}]
    yield _encoded("end_of_workflow", {})


def _encoded(name: str, data: Body) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


async def _lean_answer(model_url: str, messages: list[Body]) -> AsyncIterator[list[Body]]:
    """Yield the deltas of an answer; what has arrived together comes together."""
    address = urlsplit(model_url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        body = json.dumps({"model": "scripted", "messages": messages, "stream": True}).encode()
        head = f"POST {address.path}/chat/completions HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        waiting, is_done = b"", False
        while not is_done and (received := await reader.read(65_536)):
            *lines, waiting = (waiting + received).split(b"\n")
            is_done = b"data: [DONE]" in lines
            yield [_delta(line) for line in lines if line.startswith(b"data: {")]
    finally:
        writer.close()


def _delta(line: bytes) -> Body:
    choices = json.loads(line[6:])["choices"]
    return choices[0]["delta"] if choices else {}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bare_server", description=__doc__)
    parser.add_argument("kind", choices=("bare", "lean"))
    parser.add_argument("model_url")
    parser.add_argument("--member", choices=TEAMS, default="coder")
    parser.add_argument("--site", default="")
    options = parser.parse_args()
    if options.kind == "bare":
        app = bare_app(options.model_url, options.member, options.site)
    else:
        app = lean_app(options.model_url, options.member)
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    config = uvicorn.Config(app, log_level="warning", loop="asyncio" if options.kind == "bare" else "uvloop")
    print(f"Serving on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
