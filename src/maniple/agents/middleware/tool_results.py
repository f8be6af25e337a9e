"""Middleware that changes tool results:

It masks secrets, limits lengths, extracts pages, and adds pictures.
"""

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

from maniple.agents.middleware.base import ModelHandler, ResultMiddleware, artifact_fields
from maniple.agents.middleware.fencing import fence_untrusted
from maniple.agents.middleware.picture_room import NO_ROOM, count_fitting, take_picture_room
from maniple.agents.task import current_task
from maniple.errors import FileError, ModelError
from maniple.evidence import Extract, extract
from maniple.llms import capabilities_of
from maniple.llms.context_windows import characters_within, is_overflow, room_of
from maniple.llms.picture_parts import content_tokens
from maniple.reading.pictures import identify_picture
from maniple.redaction import Redactor
from maniple.scope.run_scope import run_scope
from maniple.tools.documents import SHOWN_PICTURES
from maniple.tools.items import WHOLE, StoredResults, describe_source_files
from maniple.tools.web import PAPER_SEARCH, SEARCHES, WEB_SEARCH
from maniple.types import is_dict, is_list


class SecretMasking(ResultMiddleware):
    """Masks secrets of the settings in results, such as a key that a server repeats in its error."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    async def transform(self, result: ToolMessage, request: ToolCallRequest) -> ToolMessage:
        masked = self._redactor.value(result.content)
        return result if masked is result.content else result.model_copy(update={"content": masked})


RESULT_MAX_CHARACTERS = 24_000
"""The limit of a result. A page of a file is shorter, so that its hint how to read on stays
(`maniple.tools.text_file`)."""
RESULT_WINDOW_SHARE = 0.25
"""The largest share of the model's prompt that one result may take."""


class ResultLengthLimit(ResultMiddleware):
    """Cuts long results in their middles.

    The full text is stored in a file, which becomes an artifact of the run.
    """

    def __init__(self, model: BaseChatModel, stored: StoredResults | None = None) -> None:
        super().__init__()
        self._model = model
        self._stored = stored

    async def transform(self, result: ToolMessage, request: ToolCallRequest) -> ToolMessage:
        text = _text(result.content)
        # Estimated from its beginning: one Chinese character has as many tokens as four Latin ones.
        tokens = int(RESULT_WINDOW_SHARE * room_of(self._model))
        most = min(RESULT_MAX_CHARACTERS, characters_within(tokens, text[:RESULT_MAX_CHARACTERS]))
        if len(text) <= most:
            return result
        half = most // 2
        # A tool that has cut its result itself has also stored the full text.
        full = artifact_fields(result).get(WHOLE)
        characters = full["characters"] if full else len(text)
        left_out = f"{characters - 2 * half:,} of {characters:,} characters left out"
        where = full["where"] if full else await self._describe_location(result.name or "tool", text)
        short = f"{text[:half]}\n[… {left_out}; {where} …]\n{text[len(text) - half :]}"
        return result.model_copy(update={"content": _with(result.content, short)})

    async def _describe_location(self, name: str, text: str) -> str:
        return await self._stored.describe_location(name, text) if self._stored else "they are not kept"


def _text(content: str | list[Any]) -> str:
    if isinstance(content, str):
        return content
    texts = (part if isinstance(part, str) else part.get("text") for part in content)
    return "\n".join(text for text in texts if isinstance(text, str))


def _with(content: str | list[Any], short: str) -> str | list[Any]:
    """Return the content with its text parts replaced by `short`.

    Other parts, such as pictures, follow it.
    """
    if isinstance(content, str):
        return short
    others = [part for part in content if is_dict(part) and "text" not in part]
    return [{"type": "text", "text": short}, *others]


PAGE_CHARACTERS = 6_000
SECTION_CHARACTERS = 12_000
"""The limit of a section that was requested by its name."""
HIT_CHARACTERS = 700
PAGE_WINDOW_SHARE = 0.125
"""The largest share of the model's prompt that a page may take; a section that was requested may take that
of a result."""
_HEADINGS, _HEADING_CHARACTERS = 20, 80
_CITED = re.compile(r'"cite": (\d+)')
_NOTHING_NEW = "\n\nNothing new:"
_SHOWN_ABOVE = "[shown above]"
_SOURCE = re.compile(r"^Source \[(\d+)\]: ", re.MULTILINE)
_NEAREST = ", the passages nearest to your step"
_FIRST = "the first "


class WebExtracts(ResultMiddleware):
    """Shortens the results of tools that search and read the web; other results pass unchanged."""

    def __init__(self, model: BaseChatModel) -> None:
        super().__init__()
        self._model = model

    async def transform(self, result: ToolMessage, request: ToolCallRequest) -> ToolMessage:
        if result.status == "error" or not isinstance(result.content, str):
            return result
        shorten = {
            WEB_SEARCH: self._shorten_hits,
            PAPER_SEARCH: self._shorten_hits,
            "crawl_tool": self._shorten_page,
            "browser": self._shorten_opened_page,
        }.get(result.name or "")
        if shorten is None:
            return result
        # Ranking a long page takes long enough to block the event loop.
        kept = await _describe_kept(result.content) if shorten != self._shorten_hits else ""
        content = await asyncio.to_thread(shorten, result.content, request, kept)
        return result.model_copy(update={"content": content})

    def _shorten_hits(self, content: str, request: ToolCallRequest, kept: str = "") -> str:
        """Shorten the content of each hit; add a note if the agent has seen all hits before."""
        hits = _parse_json(content, list)
        if not hits or not all(isinstance(hit, dict) for hit in hits):
            return content
        query = _query_text(request)
        listed = [hit for hit in hits if "note" not in hit]
        for hit in listed:
            hit["content"] = self._extract(str(hit.get("content") or ""), query, HIT_CHARACTERS).text
        found = {hit.get("cite") for hit in listed}
        seen = _seen_citations(request.state["messages"])
        repeats = (
            f"{_NOTHING_NEW} {len(found)} of {len(found)} known already." if listed and found <= seen else ""
        )
        return json.dumps(hits, ensure_ascii=False) + repeats

    def _shorten_page(self, content: str, request: ToolCallRequest, kept: str = "") -> str:
        if request.tool_call["args"].get("section"):
            # The agent has chosen what to read, so passages are not ranked.
            chosen = self._extract(content, "", SECTION_CHARACTERS, RESULT_WINDOW_SHARE)
        else:
            chosen = self._extract(content, _query_text(request), PAGE_CHARACTERS)
        if chosen.is_whole:
            return f"{content}\n\n[{kept}]" if kept else content
        return f"{chosen.text}\n\n{_reading_hint(content, chosen, kept, request)}"

    def _shorten_opened_page(self, content: str, request: ToolCallRequest, kept: str = "") -> str:
        shown = _parse_json(content, dict)
        if not shown or not isinstance(shown.get("result_content"), str):
            return content
        shown["result_content"] = self._shorten_page(shown["result_content"], request, kept)
        return json.dumps(shown, ensure_ascii=False)

    def _extract(self, text: str, query: str, characters: int, share: float = PAGE_WINDOW_SHARE) -> Extract:
        tokens = int(share * room_of(self._model))
        return extract(text, query, min(characters, characters_within(tokens, text)))


async def _describe_kept(content: str) -> str:
    """Return which files keep the page of a result; "" for none, and for a short page without tables."""
    found = _SOURCE.search(content)
    items, evidence = current_task().items_of_thread, run_scope().evidence
    # The files are there before the result names them: the next call may open them.
    if found is None or items is None or not await items.mirror_source(evidence, int(found[1])):
        return ""
    kept = await describe_source_files(evidence, int(found[1]))
    return kept if len(content) > HIT_CHARACTERS or ".csv" in kept else ""


class RepeatedHits(AgentMiddleware[Any, Any]):
    """Shows once what several searches of an agent have found of a page.

    A later hit of the page has only its number and address, and its extract if that is another one.

    Only requests to the model are shortened. The results themselves, and so events and records, stay whole.
    """

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        messages = list(request.messages)
        seen: dict[str, list[str]] = {}
        for at, message in enumerate(messages):
            if isinstance(message, ToolMessage) and message.name in SEARCHES:
                messages[at] = _shorten_repeats(message, seen)
        return await handler(request.override(messages=messages))


def _shorten_repeats(result: ToolMessage, seen: dict[str, list[str]]) -> ToolMessage:
    """Return a search result without what is in `seen`, the extracts by address, and add its hits to it."""
    listed, note, known = result.text.partition(_NOTHING_NEW)
    hits = _parse_json(listed, list)
    if not hits or not all(is_dict(hit) for hit in hits):
        return result
    shown: list[dict[str, Any]] = []
    for hit in hits:
        if "note" in hit:  # what the search cannot find: said once, until it changes
            notes = seen.setdefault("note", [])
            shown += [] if hit["note"] in notes else [hit]
            notes.append(hit["note"])
            continue
        extracts, content = seen.setdefault(str(hit.get("url")), []), str(hit.get("content") or "")
        named = {key: hit[key] for key in ("url", "cite") if key in hit}
        is_known = any(content in one for one in extracts)
        shown.append({**named, "content": _SHOWN_ABOVE if is_known else content} if extracts else hit)
        extracts.append(content)
    text = json.dumps(shown, ensure_ascii=False)
    return result if shown == hits else result.model_copy(update={"content": f"{text}{note}{known}"})


def _query_text(request: ToolCallRequest) -> str:
    """Return the text that passages are ranked by: the call's arguments and the step."""
    wanted = [one for one in request.tool_call["args"].values() if isinstance(one, str)]
    task = current_task()
    return " ".join([*wanted, task.title, task.description])


def _reading_hint(content: str, chosen: Extract, kept: str, request: ToolCallRequest) -> str:
    """Return the note at the end of an extract: how much of the page it is, and where the rest is."""
    names = [name[:_HEADING_CHARACTERS] for name in chosen.left_out if name]
    more = f"; and {len(names) - _HEADINGS} more" if len(names) > _HEADINGS else ""
    sections = f" Sections left out: {'; '.join(names[:_HEADINGS])}{more}." if names else ""
    readable = request.tool is not None and "section" in request.tool.args
    section = "section" if names or chosen.left_out else "section=1"
    how = f" To read more: {request.tool_call['name']}(url, {section})." if readable else ""
    shown = f"{chosen.characters:,} of {len(content):,} characters{_describe_rows(chosen)}"
    return f"[Shown: {shown}.{sections}{how}{kept and ' '}{kept}]"


_MAX_RANGES = 4


def _describe_rows(chosen: Extract) -> str:
    """Return which rows of tables an extract shows; "" if no table was cut."""
    shown = sum(map(len, chosen.rows))
    if shown == chosen.all_rows:
        return ""
    if chosen.tables > 1 or not 0 < len(chosen.rows) <= _MAX_RANGES:
        return f", with {shown:,} of {chosen.all_rows:,} table rows"
    ranges = " and ".join(f"{one.start:,}–{one.stop - 1:,}" for one in chosen.rows)
    return f", with rows {ranges} of the table's {chosen.all_rows:,}"


def _seen_citations(messages: Iterable[BaseMessage]) -> set[int]:
    """Return the citation numbers of the hits in the conversation."""
    results = (one.text for one in messages if isinstance(one, ToolMessage) and one.name in SEARCHES)
    return {int(number) for text in results for number in _CITED.findall(text)}


def _parse_json(content: str, kind: type) -> Any:
    try:
        found = json.loads(content)
    except ValueError:
        return None
    return found if isinstance(found, kind) else None


MAX_PICTURES = 4
"""The limit of pictures in a request; those of the newest results are taken."""
MAX_OF_A_PAGE = 3
BLIND = "your model does not see pictures"
# More than `MAX_OF_A_PAGE`, because some pictures are icons or cannot be loaded.
_TRIED_OF_A_PAGE = 6

ReadPicture = Callable[[str], Awaitable[bytes]]
"""Returns the bytes of the picture at a path or URL, b"" for none; raises `FileError`."""
Parts = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class PictureSource:
    """How the pictures of tool results are found, read, and introduce to a model."""

    find_names: Callable[[ToolMessage], Sequence[str]]
    read: ReadPicture
    introduce: Callable[[ToolMessage, str], str]
    most_of_a_result: int = MAX_PICTURES
    is_missed: bool = False
    """Whether a model that does not see reads that it is not shown them."""


def figure_source(read: ReadPicture) -> PictureSource:
    """Return the source of figures that the coder's tools drew.

    Their messages' artifacts are lists of paths.
    """

    def find_names(message: ToolMessage) -> Sequence[str]:
        artifact: Any = message.artifact
        paths = [path for path in artifact if isinstance(path, str)] if is_list(artifact) else []
        return paths[-MAX_PICTURES:]

    def introduce(_: ToolMessage, path: str) -> str:
        return f"This is {path}, drawn by the code above:"

    return PictureSource(find_names, read, introduce, is_missed=True)


def server_picture_source(read: ReadPicture) -> PictureSource:
    """Return the source of pictures from MCP servers.

    Their messages' artifacts have `server` and `pictures`.
    """

    def find_names(message: ToolMessage) -> Sequence[str]:
        return artifact_fields(message).get("pictures", ())[-MAX_PICTURES:]

    def introduce(message: ToolMessage, path: str) -> str:
        return f"This picture, which is data too, is {path}, from the server {message.artifact['server']}:"

    return PictureSource(find_names, read, introduce, is_missed=True)


def page_picture_source(read: ReadPicture) -> PictureSource:
    """Return the source of the first pictures in the shown text of each page."""

    def find_names(message: ToolMessage) -> Sequence[str]:
        # A picture that is an item is shown as such (`ItemPictures`).
        is_page = message.name == "crawl_tool" and SHOWN_PICTURES not in artifact_fields(message)
        found = _IMAGE.findall(message.text) if is_page else ()
        return list(islice(dict.fromkeys(found), _TRIED_OF_A_PAGE))

    def introduce(_: ToolMessage, url: str) -> str:
        # The address comes from the page, so it is untrusted like its text.
        return f"This picture, which is data too, is from the page above:\n{fence_untrusted(url)}"

    return PictureSource(find_names, read, introduce, MAX_OF_A_PAGE)


_IMAGE = re.compile(r"!\[[^\]\n]{0,500}\]\((https?://[^\s()]{1,2000}(?:\([^\s()]{0,200}\)[^\s()]{0,2000})?)")


@dataclass(frozen=True, slots=True)
class _FoundPicture:
    """A picture of a result, which is the message at `index`."""

    index: int
    message: ToolMessage
    name: str
    content: bytes


def _name_unshown(name: str) -> dict[str, Any]:
    # A page's pictures are named by addresses, which are untrusted.
    shown = fence_untrusted(name) if "://" in name else name
    return {"type": "text", "text": f"[not shown to you, because {NO_ROOM}: {shown}]"}


class ResultPictures(AgentMiddleware[Any, Any]):
    """Adds pictures to requests, unless the model is known to have no vision."""

    def __init__(self, source: PictureSource) -> None:
        super().__init__()
        self._source = source

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        if not capabilities_of(request.model).has("vision"):
            return await handler(self._without(request))
        found = await self._find(request.messages)
        if not found:
            return await handler(request)
        sizes = [content_tokens(one.content) for one in found]
        fitting = count_fitting(request, sizes)
        parts: dict[int, Parts] = {}
        for at in reversed(range(len(found))):
            one = found[at]
            shown = self._shown(one) if at < fitting else [_name_unshown(one.name)]
            parts.setdefault(one.index, []).extend(shown)
        illustrated = request.override(messages=insert_pictures(request.messages, parts))
        try:
            return await handler(take_picture_room(illustrated, sum(sizes[:fitting])))
        except ModelError as error:
            # Endpoints reject pictures with various errors, and the work can continue without them.
            if error.code != "model_bad_request" or is_overflow(error):
                raise
        return await handler(self._without(request))

    def _without(self, request: ModelRequest) -> ModelRequest:
        """Return the request with a note behind each result whose pictures the model does not see."""
        if not self._source.is_missed:
            return request
        notes: dict[int, Parts] = {}
        for index, message in enumerate(request.messages):
            names = self._source.find_names(message) if isinstance(message, ToolMessage) else ()
            if names:
                text = f"[not shown to you, because {BLIND}: {', '.join(names)}]"
                notes[index] = [{"type": "text", "text": text}]
        return request.override(messages=insert_pictures(request.messages, notes)) if notes else request

    async def count_pictures(self, request: ModelRequest) -> Sequence[int]:
        """See `PictureAdding`."""
        if not capabilities_of(request.model).has("vision"):
            return []
        return [content_tokens(one.content) for one in await self._find(request.messages)]

    async def _find(self, messages: Sequence[AnyMessage]) -> list[_FoundPicture]:
        """Return the pictures to add, the newest first; at most `MAX_PICTURES`."""
        found: list[_FoundPicture] = []
        left = MAX_PICTURES
        for index in reversed(range(len(messages))):
            message = messages[index]
            if not isinstance(message, ToolMessage) or not left:
                continue
            names = self._source.find_names(message)
            contents = await asyncio.gather(*(self._read_picture(name) for name in names))
            read = [(name, content) for name, content in zip(names, contents, strict=True) if content]
            shown = read[: min(left, self._source.most_of_a_result)]
            left -= len(shown)
            found += [_FoundPicture(index, message, name, content) for name, content in reversed(shown)]
        return found

    async def _read_picture(self, name: str) -> bytes:
        try:
            return await self._source.read(name)
        except FileError:  # it was removed in the meantime
            return b""

    def _shown(self, picture: _FoundPicture) -> Parts:
        return label_picture(self._source.introduce(picture.message, picture.name), picture.content)


def insert_pictures(messages: Sequence[AnyMessage], parts: dict[int, Parts]) -> list[AnyMessage]:
    """Return `messages` with the pictures added after the results of the same answer."""
    shown: list[AnyMessage] = []
    waiting: Parts = []
    for index, message in enumerate(messages):
        if waiting and not isinstance(message, ToolMessage):
            shown.append(HumanMessage(message_content(waiting)))
            waiting.clear()
        shown.append(message)
        waiting += parts.get(index, [])
    return [*shown, HumanMessage(message_content(waiting))] if waiting else shown


def message_content(parts: Parts) -> str | list[Any]:
    """Return the parts as a message's content; text alone as text, which every endpoint accepts."""
    texts = [part["text"] for part in parts if part["type"] == "text"]
    return "\n".join(texts) if len(texts) == len(parts) else list(parts)


def label_picture(text: str, content: bytes) -> Parts:
    """Return the parts of a message that show a picture below a text."""
    picture = identify_picture(content)
    media_type = picture.media_type if picture else "image/png"
    url = f"data:{media_type};base64,{base64.b64encode(content).decode()}"
    return [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]
