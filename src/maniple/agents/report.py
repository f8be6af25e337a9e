"""A report while it is written: what of it may be shown."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from pydantic import Field

from maniple.agents.middleware.base import ModelHandler
from maniple.agents.middleware.context_window import send_within_window
from maniple.agents.middleware.fencing import fence_untrusted
from maniple.agents.run_scope import run_scope
from maniple.agents.task import Task, current_task
from maniple.errors import BudgetExhausted, ModelError
from maniple.evidence import MemoryEvidence
from maniple.evidence.blocks import Blocks
from maniple.evidence.check import Finding, SourceCheck, marked
from maniple.evidence.excerpt import excerpt_near
from maniple.evidence.source_list import WrittenList, heading_for, listed, source_list
from maniple.llms import Capabilities, capabilities_of
from maniple.prompts import render
from maniple.reading.markdown import MarkdownScanner
from maniple.text import without_thoughts
from maniple.tools.evidence import current_evidence
from maniple.types import REPAIR_SOURCE


@dataclass(frozen=True, slots=True)
class ReportPassage:
    """A block of the report, and what in it does not hold."""

    text: str
    findings: Sequence[Finding] = ()


RepairPassages = Callable[[Sequence[ReportPassage]], Awaitable[Mapping[int, str]]]
"""Gives new texts for passages, by their places in the sequence; none for those that it cannot mend."""


class ReportDraft:
    """Takes a report as its model writes it and gives what holds, block by block.

    From the first block that does not hold on, the rest is kept back until all of it is there: then `mend`
    is asked once, what still does not hold is marked, and the sources that are cited are listed, in the place
    of a list that the model wrote. `at_hand` are the sources to list for a report that cites none.
    """

    def __init__(
        self,
        check: SourceCheck,
        mend: RepairPassages | None = None,
        *,
        locale: str = "",
        at_hand: Collection[int] = (),
    ) -> None:
        self._check = check
        self._mend = mend
        self._locale = locale
        self._at_hand = at_hand
        self._blocks = Blocks()
        self._own_list = WrittenList()
        self._kept: list[ReportPassage] = []
        self._shown: list[str] = []

    async def feed(self, text: str) -> str:
        """Return what may be shown now that `text` has been written."""
        return await self._checked(self._without_list(self._blocks.feed(text)))

    async def end(self) -> str:
        """Return the rest of the report. It takes a model call at most."""
        rest = [await self._checked([*self._without_list(self._blocks.end()), *self._own_list.end()])]
        for passage in await self._mended():
            rest.append(marked(passage.text, passage.findings))
        self._shown += rest[1:]
        return "".join(rest) + await self._listed()

    def _without_list(self, blocks: Sequence[str]) -> list[str]:
        return [left for block in blocks for left in self._own_list.feed(block)]

    async def _checked(self, blocks: Sequence[str]) -> str:
        ready: list[str] = []
        for block in blocks:
            findings = await self._check.findings(block)
            if findings or self._kept:
                self._kept.append(ReportPassage(block, findings))
            else:
                ready.append(block)
        self._shown += ready
        return "".join(ready)

    async def _mended(self) -> list[ReportPassage]:
        failing = [index for index, passage in enumerate(self._kept) if passage.findings]
        if failing and self._mend is not None:
            replies = await self._mend([self._kept[index] for index in failing])
            for place, index in enumerate(failing):
                if reply := replies.get(place, "").strip():
                    self._kept[index] = await self._better(self._kept[index], reply)
        return self._kept

    async def _better(self, passage: ReportPassage, reply: str) -> ReportPassage:
        """Return what holds better of a passage and what its writer gave for it; as good is not better."""
        ending = passage.text[len(passage.text.rstrip()) :]
        findings = await self._check.findings(reply)
        if len(findings) >= len(passage.findings):
            return passage
        if not await is_repair(passage.text, passage.findings, reply, self._check):
            return passage
        return ReportPassage(reply + ending, findings)

    async def _listed(self) -> str:
        report = "".join(self._shown)
        if not report.strip():
            return ""
        numbers = await self._check.cited(report) or await self._check.cited("".join(self._own_list.taken))
        sources = [self._check.sources[number] for number in sorted(numbers or self._at_hand)]
        heading = self._own_list.heading or heading_for(report, self._locale)
        added = source_list(sources, heading)
        return "\n" * max(2 - _newlines_behind(report), 0) + added if added else ""


def _newlines_behind(text: str) -> int:
    return len(text) - len(text.rstrip("\n"))


LEAST_SHARE = 0.5
"""Of the characters of a passage that nobody objected to."""
_KINDS = {
    "table": re.compile(r"[ \t]*\|"),
    "list": re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]"),
    "heading": re.compile(r" {0,3}#{1,6}[ \t]"),
}


async def is_repair(passage: str, findings: Iterable[Finding], reply: str, check: SourceCheck) -> bool:
    """Say whether `reply` keeps what is good in `passage`, in which `findings` do not hold.

    It may not leave code open, turn a table, a list, a heading or a paragraph into something else, lose a
    citation that nobody objected to, or be much shorter than what nobody objected to.
    """
    objected = [finding.citation for finding in findings]
    doubted = {number for one in objected if one.kind == "quotation" for number in one.numbers}
    kept = len(passage.strip()) - sum(one.end - one.start for one in objected)
    if len(reply) < LEAST_SHARE * kept or _kinds(reply) != _kinds(passage):
        return False
    return await check.cited(passage) - doubted <= await check.cited(reply)


def _kinds(text: str) -> set[str]:
    """Return what `text` is made of beside paragraphs; code that it leaves open is a kind of its own."""
    fences, prose = MarkdownScanner(), []
    for line in text.splitlines():
        if not fences.take(line).is_code:
            prose.append(line)
    kinds = {kind for kind, begin in _KINDS.items() if any(map(begin.match, prose))}
    return kinds | {"open code"} if fences.mark else kinds


MOST_AHEAD = 8_000
"""Characters of a block that are shown before it is whole; the rest of a longer one waits."""
_MAY_BE_AN_ADDRESS = re.compile(r"[/&\\]|www|\]\(|\w:\w", re.IGNORECASE)
_MAY_CITE = re.compile(r"[/&\\\[【［<>\"“”„‟«»‹›「」『』〝〟｢｣❝❛＂'’‘‚]|www|\w:\w", re.IGNORECASE)


class UncitedDraft:
    """Takes a report as its model writes it; a block waits from what may be a part of an address on.

    Where `check` looks at words, too, it waits from what may begin a citation or a quotation on.
    """

    def __init__(self, check: SourceCheck) -> None:
        self._check = check
        self._waits = _MAY_CITE if check.checks_words else _MAY_BE_AN_ADDRESS
        self._blocks = Blocks()
        self._shown = 0

    async def feed(self, text: str) -> str:
        """Return what may be shown now that `text` has been written."""
        ready = [await self._rest_of(block) for block in self._blocks.feed(text)]
        if self._blocks.pending_characters <= MOST_AHEAD:
            begun = self._blocks.pending
            if not self._waits.search(begun):
                ready.append(begun[self._shown :])
                self._shown = len(begun)
        return "".join(ready)

    async def end(self) -> str:
        """Return the rest of the report."""
        return "".join([await self._rest_of(block) for block in self._blocks.end()])

    async def _rest_of(self, block: str) -> str:
        # What is shown of it holds no part of what may be marked, so that no mark belongs before its end.
        # Nor does the next block, where what ends this one came with words behind it.
        shown, self._shown = self._shown, max(self._shown - len(block), 0)
        return marked(block, await self._check.findings(block))[shown:]


REPAIR_SECONDS = 120.0
MOST_PASSAGES = 20
MOST_OBJECTIONS = 5
"""Told of one passage."""
MOST_SOURCES = 40
SHARE_OF_TIME = 0.8
"""Of what is left of the run's seconds: the report must be handed over within them."""
_PASSAGE = re.compile(r'<passage number="(\d{1,4})">')


@dataclass(frozen=True, slots=True)
class ReportRepair:
    """Asks `model` for new passages in one call, which counts like any and is told to nobody.

    What it cannot be asked for, because the budget or the time is used up or the model fails, stays as it is.
    """

    model: BaseChatModel
    check: SourceCheck

    async def __call__(self, passages: Sequence[ReportPassage]) -> Mapping[int, str]:
        meter = run_scope().meter
        left = meter.seconds_left if meter else REPAIR_SECONDS
        if left <= 0:
            return {}
        try:
            async with asyncio.timeout(min(REPAIR_SECONDS, SHARE_OF_TIME * left)):
                asked = await self._asked(passages[:MOST_PASSAGES])
                prompt = [SystemMessage(render("repair")), HumanMessage(asked)]
                answer = await send_within_window(self.model, prompt, self._send)
        except (ModelError, BudgetExhausted, TimeoutError):
            return {}
        return _read(without_thoughts(answer.text))

    async def _send(self, messages: Sequence[BaseMessage]) -> AIMessage:
        # Its words are nobody's: LangGraph's streams leave out what has this tag, ours what has this source.
        config: RunnableConfig = {"metadata": {"lc_source": REPAIR_SOURCE}, "tags": ["nostream"]}
        return await self.model.ainvoke(list(messages), config=config)

    async def _asked(self, passages: Sequence[ReportPassage]) -> str:
        sources = list(self.check.sources.values())[:MOST_SOURCES]
        parts = [f"The sources:\n{fence_untrusted(listed(sources))}"]
        for number, passage in enumerate(passages, start=1):
            parts.append(f'<passage number="{number}">\n{passage.text.strip()}\n</passage>')
            parts += [await self._objection(finding) for finding in passage.findings[:MOST_OBJECTIONS]]
        return "\n\n".join(parts)

    async def _objection(self, finding: Finding) -> str:
        line = f"Wrong in it: {finding.reason}"
        if finding.citation.kind != "quotation":
            return line
        texts = await self.check.texts(finding.citation)
        near = await asyncio.to_thread(excerpt_near, finding.citation.text, texts)
        return f"{line}\nWhat stands there:\n{fence_untrusted(near)}" if near else line


def _read(answer: str) -> dict[int, str]:
    """Return the passages of an answer by their places, from 0; of one that is given twice, the last."""
    _, *pieces = _PASSAGE.split(answer)
    return {
        int(number) - 1: text.partition("</passage>")[0].strip()
        for number, text in zip(pieces[::2], pieces[1::2], strict=True)
        if "</passage>" in text
    }


class CheckedReportModel(BaseChatModel):
    """Asks `model` and passes its answer through a draft, a new one for each call.

    Callbacks, events and the answer have the checked text alone; thoughts pass at once, usage and the reason
    of the end as they came. It can only be asked asynchronously.
    """

    model: BaseChatModel = Field(exclude=True)
    draft: Callable[[], ReportDraft | UncitedDraft] = Field(exclude=True)
    cache: Any = Field(default=False, exclude=True)
    """Not from a cache: what holds is another matter in each run."""

    @property
    def capabilities(self) -> Capabilities:
        """What is known of the model that is asked."""
        return capabilities_of(self.model)

    @property
    def _llm_type(self) -> str:
        return self.model._llm_type

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return dict(self.model._identifying_params)

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return self.model._get_ls_params(stop=stop, **kwargs)

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("A report is only checked asynchronously; use ainvoke or astream.")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        result = await self.model._agenerate(messages, stop, None, **kwargs)
        first = result.generations[0]
        draft = self.draft()
        text = await draft.feed(first.message.text) + await draft.end()
        message = cast("AIMessage", first.message).model_copy(update={"content": text})
        checked = ChatGeneration(message=message, generation_info=first.generation_info)
        return ChatResult(generations=[checked], llm_output=result.llm_output)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        draft, ending = self.draft(), list[ChatGenerationChunk]()
        message_id: str | None = None
        stream = cast("Any", self.model._astream(messages, stop, None, **kwargs))
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                message_id = chunk.message.id or message_id
                ready, bare = await draft.feed(chunk.text), _without_text(chunk)
                if ready:
                    yield _spoken(ready, message_id)
                # Nothing is said behind the end: it waits for what is still to be looked at.
                if ending or _ends(chunk):
                    ending.append(bare)
                elif _has_more(bare):
                    yield bare
        if rest := await draft.end():
            yield _spoken(rest, message_id)
        for chunk in ending:
            yield chunk


def _spoken(text: str, message_id: str | None) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(content=text, id=message_id))


def _without_text(chunk: ChatGenerationChunk) -> ChatGenerationChunk:
    message = chunk.message.model_copy(update={"content": ""})
    return ChatGenerationChunk(message=message, generation_info=chunk.generation_info)


def _ends(chunk: ChatGenerationChunk) -> bool:
    return bool((chunk.generation_info or {}).get("finish_reason")) or _is_last(chunk)


def _is_last(chunk: ChatGenerationChunk) -> bool:
    return getattr(chunk.message, "chunk_position", None) == "last"


def _has_more(chunk: ChatGenerationChunk) -> bool:
    """Whether a chunk says anything beside its text."""
    message = cast("AIMessageChunk", chunk.message)
    return bool(
        message.additional_kwargs
        or message.tool_call_chunks
        or message.usage_metadata
        or message.response_metadata
        or chunk.generation_info
    )


MOST_LISTED = 40
_READ_HERE = ("researcher", "browser")
"""Whose results are taken from the web: what they quote must stand there."""


class CheckedReport(AgentMiddleware[Any, Any]):
    """Ask for the report with the sources at hand, and let only checked words out. Must be the innermost."""

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        task = current_task()
        check = await build_source_check(task)
        messages = [*request.messages]
        draft: Callable[[], ReportDraft | UncitedDraft] = partial(UncitedDraft, check)
        if check.sources:
            draft = partial(ReportDraft, check, ReportRepair(request.model, check), locale=task.locale)
            if sources := await _shown(check, task):
                messages.insert(-1, HumanMessage(sources))
        model = CheckedReportModel(model=request.model, draft=draft)
        return await handler(request.override(model=model, messages=messages))


async def build_source_check(task: Task) -> SourceCheck:
    """Return the check of the report that `task` asks for."""
    said = (task.request, task.caller, *task.said)
    given = [result.text for result in task.results if result.agent not in _READ_HERE]
    researched = any(result.agent in _READ_HERE for result in task.results)
    evidence = current_evidence()
    record = MemoryEvidence() if evidence is None else evidence
    return await SourceCheck.of(record, said, given, researched=researched)


async def find_result_sources(check: SourceCheck, task: Task) -> list[int]:
    """Return the sources that the results of `task` name, by number."""
    numbers: set[int] = set()
    for result in task.results:
        numbers |= await check.cited(result.text)
    return sorted(numbers)


async def _shown(check: SourceCheck, task: Task) -> str:
    """Return the sources as the reporter sees them: those that the results name, then pages, then finds.

    Those of earlier runs are listed at the end of the last report, which the reporter is shown; "" for none.
    """
    named = await find_result_sources(check, task)
    new = [one for one in check.sources.values() if not one.inherited or one.number in named]
    order = sorted(new, key=lambda one: (one.number not in named, one.kind != "page"))
    if not order:
        return ""
    return f"The sources, to be cited by number:\n{fence_untrusted(listed(order[:MOST_LISTED]))}"


async def build_unrepaired_draft(task: Task, locale: str) -> Callable[[], ReportDraft | UncitedDraft]:
    """Return what checks the report that `task` asks for, and lists its sources as `locale` calls them."""
    check = await build_source_check(task)
    if not check.sources:
        return partial(UncitedDraft, check)
    return partial(ReportDraft, check, locale=locale, at_hand=await find_result_sources(check, task))


async def check_report(task: Task, report: str) -> str:
    """Return a report that is there already, marked, with its sources."""
    return await _through((await build_unrepaired_draft(task, task.locale))(), report)


async def check_addition(task: Task, text: str) -> str:
    """Return what is added behind a report and its sources, marked."""
    return await _through(UncitedDraft(await build_source_check(task)), text)


async def _through(draft: ReportDraft | UncitedDraft, text: str) -> str:
    return await draft.feed(text) + await draft.end()
