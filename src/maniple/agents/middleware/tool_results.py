"""Middleware: no secret of the settings reaches a model, or the record, by what a tool returns."""

import asyncio
import base64
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, ToolMessage

from maniple.agents.middleware.base import ModelHandler, ResultMiddleware
from maniple.agents.middleware.fencing import fence_untrusted
from maniple.agents.task import current_task
from maniple.errors import FileError, ModelError
from maniple.evidence import Extract, extract
from maniple.llms import capabilities_of
from maniple.llms.context_windows import characters_within, room_of
from maniple.reading.pictures import identify_picture
from maniple.redaction import Redactor
from maniple.tools.files import WHOLE, StoredResults


class SecretMasking(ResultMiddleware):
    """Masks secrets in results, such as a key that a server repeats in its error."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    async def changed(self, result: ToolMessage, request: ToolCallRequest) -> ToolMessage:
        masked = self._redactor.value(result.content)
        return result if masked is result.content else result.model_copy(update={"content": masked})


CAP_CHARACTERS = 24_000
"""More than a page of a file has, which tells how to read on (`maniple.tools.text_file`)."""
RESULT_WINDOW_SHARE = 0.25
"""Of what the model's prompt may have: no result takes more."""


class ResultLengthLimit(ResultMiddleware):
    """Cuts texts in their middles. What is kept becomes an artifact of the run, as all new files do."""

    def __init__(self, model: BaseChatModel, kept: StoredResults | None = None) -> None:
        super().__init__()
        self._tokens = int(RESULT_WINDOW_SHARE * room_of(model))
        self._kept = kept

    async def changed(self, result: ToolMessage, request: ToolCallRequest) -> ToolMessage:
        text = _text(result.content)
        # By its head: one character of Chinese is as many tokens as four others.
        most = min(CAP_CHARACTERS, characters_within(self._tokens, text[:CAP_CHARACTERS]))
        if len(text) <= most:
            return result
        half = most // 2
        # A tool that has cut its result itself has kept the whole.
        whole = result.artifact.get(WHOLE) if isinstance(result.artifact, dict) else None
        characters = whole["characters"] if whole else len(text)
        left_out = f"{characters - 2 * half:,} of {characters:,} characters left out"
        where = whole["where"] if whole else await self._place(result.name or "tool", text)
        short = f"{text[:half]}\n[… {left_out}; {where} …]\n{text[len(text) - half :]}"
        return result.model_copy(update={"content": _with(result.content, short)})

    async def _place(self, name: str, text: str) -> str:
        return await self._kept.place(name, text) if self._kept else "they are not kept"


def _text(content: str | list[Any]) -> str:
    if isinstance(content, str):
        return content
    texts = (part if isinstance(part, str) else part.get("text") for part in content)
    return "\n".join(text for text in texts if isinstance(text, str))


def _with(content: str | list[Any], short: str) -> str | list[Any]:
    """Return the content with one text, before whatever it holds that is none, such as pictures."""
    if isinstance(content, str):
        return short
    others = [part for part in content if isinstance(part, dict) and "text" not in part]
    return [{"type": "text", "text": short}, *others]


PAGE_CHARACTERS = 6_000
SECTION_CHARACTERS = 12_000
"""Of a section that was asked for by its name, more is shown."""
HIT_CHARACTERS = 700
PAGE_WINDOW_SHARE = 0.125
"""Of what the model's prompt may have: no page takes more."""
_HEADINGS, _HEADING_CHARACTERS = 20, 80
_CITED = re.compile(r'"cite": (\d+)')
_SEARCH = "tavily_search"
_CHOSEN = "An extract of {:,} characters, chosen for your step"
_BEGINNING = "The beginning of {:,} characters"


class WebExtracts(ResultMiddleware):
    """Shortens the results of the tools that search and read the web; others pass."""

    def __init__(self, model: BaseChatModel) -> None:
        super().__init__()
        self._tokens = int(PAGE_WINDOW_SHARE * room_of(model))

    async def changed(self, result: ToolMessage, request: ToolCallRequest) -> ToolMessage:
        if result.status == "error" or not isinstance(result.content, str):
            return result
        shorten = {_SEARCH: self._hits, "crawl_tool": self._page, "browser": self._opened}.get(
            result.name or ""
        )
        if shorten is None:
            return result
        # In a thread: ranking a long page takes its time.
        content = await asyncio.to_thread(shorten, result.content, request)
        return result.model_copy(update={"content": content})

    def _hits(self, content: str, request: ToolCallRequest) -> str:
        """Shorten what each hit says; say so when the agent has seen every one of them before."""
        hits = _read(content, list)
        if not hits or not all(isinstance(hit, dict) for hit in hits):
            return content
        asked = _asked(request)
        for hit in hits:
            hit["content"] = self._extract(str(hit.get("content") or ""), asked, HIT_CHARACTERS).text
        found = {hit.get("cite") for hit in hits}
        seen = _seen(request.state["messages"])
        repeats = f"\n\nNothing new: {len(found)} of {len(found)} known already." if found <= seen else ""
        return json.dumps(hits, ensure_ascii=False) + repeats

    def _page(self, content: str, request: ToolCallRequest) -> str:
        if request.tool_call["args"].get("section"):
            # The agent knows what it wants to read: nothing is chosen for it.
            chosen, what = self._extract(content, "", SECTION_CHARACTERS), _BEGINNING
        else:
            chosen, what = self._extract(content, _asked(request), PAGE_CHARACTERS), _CHOSEN
        if chosen.is_whole:
            return content
        return f"{chosen.text}\n\n{_notice(content, what, chosen.left_out, request)}"

    def _opened(self, content: str, request: ToolCallRequest) -> str:
        shown = _read(content, dict)
        if not shown or not isinstance(shown.get("result_content"), str):
            return content
        shown["result_content"] = self._page(shown["result_content"], request)
        return json.dumps(shown, ensure_ascii=False)

    def _extract(self, text: str, asked: str, characters: int) -> Extract:
        return extract(text, asked, min(characters, characters_within(self._tokens, text)))


def _asked(request: ToolCallRequest) -> str:
    """Return what a call is to find out: its own words, and those of the step."""
    wanted = [one for one in request.tool_call["args"].values() if isinstance(one, str)]
    task = current_task()
    return " ".join([*wanted, task.title, task.description])


def _notice(content: str, what: str, left_out: Iterable[str], request: ToolCallRequest) -> str:
    """Return the last words of an extract: how long the page is, and how to read on."""
    names = [name[:_HEADING_CHARACTERS] for name in left_out if name]
    more = f"; and {len(names) - _HEADINGS} more" if len(names) > _HEADINGS else ""
    sections = f" Sections left out: {'; '.join(names[:_HEADINGS])}{more}." if names else ""
    readable = request.tool is not None and "section" in request.tool.args
    how = f" Read on: {request.tool_call['name']}(url, section)." if readable else ""
    return f"[{what.format(len(content))}.{sections}{how}]"


def _seen(messages: Iterable[BaseMessage]) -> set[int]:
    """Return the numbers of the hits that the conversation holds."""
    results = (one.text for one in messages if isinstance(one, ToolMessage) and one.name == _SEARCH)
    return {int(number) for text in results for number in _CITED.findall(text)}


def _read(content: str, kind: type) -> Any:
    try:
        found = json.loads(content)
    except ValueError:
        return None
    return found if isinstance(found, kind) else None


MOST_PICTURES = 4
"""Those of the newest results of a conversation."""
MOST_OF_A_PAGE = 3
# Some of a page's pictures are icons, or gone.
_TRIED_OF_A_PAGE = 6

ReadPicture = Callable[[str], Awaitable[bytes]]
"""The picture at a path or an address, or nothing; raises `FileError`."""
Parts = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class PictureSource:
    """Where pictures are named, how they are read, and how they are introduced to a model."""

    names_in: Callable[[ToolMessage], Sequence[str]]
    read: ReadPicture
    introduced: Callable[[ToolMessage, str], str]
    most_of_a_result: int = MOST_PICTURES


def drawn_figures(read: ReadPicture) -> PictureSource:
    """The figures that the coder's tools drew: the artifact of their messages names them."""

    def names_in(message: ToolMessage) -> Sequence[str]:
        artifact = message.artifact
        paths = [path for path in artifact if isinstance(path, str)] if isinstance(artifact, list) else []
        return paths[-MOST_PICTURES:]

    return PictureSource(names_in, read, lambda _, path: f"This is {path}, drawn by the code above:")


def server_pictures(read: ReadPicture) -> PictureSource:
    """The pictures that MCP servers sent: the artifact of their messages names server and paths."""

    def names_in(message: ToolMessage) -> Sequence[str]:
        artifact = message.artifact
        return artifact.get("pictures", ())[-MOST_PICTURES:] if isinstance(artifact, dict) else ()

    def introduced(message: ToolMessage, path: str) -> str:
        return f"This picture, which is data too, is {path}, from the server {message.artifact['server']}:"

    return PictureSource(names_in, read, introduced)


def page_pictures(read: ReadPicture) -> PictureSource:
    """The first pictures in what is shown of each page that was read."""

    def names_in(message: ToolMessage) -> Sequence[str]:
        found = _IMAGE.findall(message.text) if message.name == "crawl_tool" else ()
        return list(islice(dict.fromkeys(found), _TRIED_OF_A_PAGE))

    def introduced(_: ToolMessage, url: str) -> str:
        # The address is the page's word, as its text is.
        return f"This picture, which is data too, is from the page above:\n{fence_untrusted(url)}"

    return PictureSource(names_in, read, introduced, MOST_OF_A_PAGE)


_IMAGE = re.compile(r"!\[[^\]\n]{0,500}\]\((https?://[^\s()]{1,2000}(?:\([^\s()]{0,200}\)[^\s()]{0,2000})?)")


class ResultPictures(AgentMiddleware[Any, Any]):
    """Adds the pictures of a gallery to what a model is sent, unless it is known not to see."""

    def __init__(self, gallery: PictureSource) -> None:
        super().__init__()
        self._gallery = gallery

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        if not capabilities_of(request.model).has("vision"):
            return await handler(request)
        parts = await self._parts(request.messages)
        if not parts:
            return await handler(request)
        try:
            return await handler(request.override(messages=_illustrated(request.messages, parts)))
        except ModelError as error:
            # Endpoints refuse pictures in many words, and the work can go on without them.
            if error.code != "model_bad_request":
                raise
        return await handler(request)

    async def _parts(self, messages: Sequence[AnyMessage]) -> dict[int, Parts]:
        """Return what is shown after each message, by its place; no more than `MOST_PICTURES` pictures."""
        found: dict[int, Parts] = {}
        left = MOST_PICTURES
        for place in reversed(range(len(messages))):
            message = messages[place]
            if not isinstance(message, ToolMessage) or not left:
                continue
            names = self._gallery.names_in(message)
            contents = await asyncio.gather(*(self._read(name) for name in names))
            read = [(name, content) for name, content in zip(names, contents, strict=True) if content]
            shown = read[: min(left, self._gallery.most_of_a_result)]
            left -= len(shown)
            if shown:
                found[place] = [part for one in shown for part in self._shown(message, *one)]
        return found

    async def _read(self, name: str) -> bytes:
        try:
            return await self._gallery.read(name)
        except FileError:  # it has been removed since
            return b""

    def _shown(self, message: ToolMessage, name: str, content: bytes) -> Parts:
        picture = identify_picture(content)
        media_type = picture.media_type if picture else "image/png"
        url = f"data:{media_type};base64,{base64.b64encode(content).decode()}"
        return [
            {"type": "text", "text": self._gallery.introduced(message, name)},
            {"type": "image_url", "image_url": {"url": url}},
        ]


def _illustrated(messages: Sequence[AnyMessage], parts: dict[int, Parts]) -> list[AnyMessage]:
    """Return `messages` with the pictures after the results of the same turn."""
    shown: list[AnyMessage] = []
    waiting: Parts = []
    for place, message in enumerate(messages):
        if waiting and not isinstance(message, ToolMessage):
            shown.append(HumanMessage(list(waiting)))
            waiting.clear()
        shown.append(message)
        waiting += parts.get(place, [])
    return [*shown, HumanMessage(list(waiting))] if waiting else shown
