"""Reports while they are written: the check of their sources, and the repair of what fails it."""

import asyncio
import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, cast

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from pydantic import Field

from maniple.agents.claim_events import ReleasedBlocks, ReportMark, report_claims
from maniple.agents.claim_judge import ClaimJudge, JudgeChoice
from maniple.agents.finding_briefing import FINDINGS_SHARE, format_findings
from maniple.agents.gap_statements import is_stated, state_gap
from maniple.agents.middleware.base import ModelHandler
from maniple.agents.middleware.call_records import read_message
from maniple.agents.middleware.context_window import send_within_window
from maniple.agents.middleware.fencing import fence_untrusted
from maniple.agents.report_score import is_score, may_be_score
from maniple.agents.task import StepResult, Task, current_task
from maniple.claims.report_check import ReportCheck
from maniple.claims.verdict import ClaimReport
from maniple.errors import BudgetExhausted, ModelError
from maniple.evidence import MemoryEvidence, Source
from maniple.evidence.address_secrets import hide_secrets
from maniple.evidence.blocks import Blocks
from maniple.evidence.check import UnverifiedCitation
from maniple.evidence.citation import Citation
from maniple.evidence.excerpt import find_excerpt
from maniple.evidence.source_list import ModelSourceList, format_source_list, format_sources, heading_for
from maniple.llms import Capabilities, capabilities_of
from maniple.llms.context_windows import room_of
from maniple.llms.streams import limit_answer
from maniple.prompts import render
from maniple.reading.markdown import MarkdownScanner
from maniple.sandbox.notes import is_state, may_be_state
from maniple.scope.run_scope import run_scope
from maniple.text import shorten, without_thoughts
from maniple.tools.evidence import current_evidence
from maniple.tools.files import READ_FILE
from maniple.tools.item_search import SEARCH_ITEMS
from maniple.tools.items import READ_ITEM
from maniple.types import REPAIR_SOURCE


@dataclass(frozen=True, slots=True)
class ReportPassage:
    """A block of the report, and the findings against it."""

    text: str
    findings: Sequence[UnverifiedCitation] = ()


RepairPassages = Callable[[Sequence[ReportPassage]], Awaitable[Mapping[int, str]]]
"""Returns new texts for passages by their indexes; passages that cannot be repaired are left out."""


JudgeBlocks = Callable[[Sequence[str]], Awaitable[None]]
"""Asks a judge about the claims of blocks that the rules leave open; the check takes the verdicts."""


class Draft(Protocol):
    """A report that is checked while the model writes it."""

    async def feed(self, text: str) -> str:
        """Take the next part of the report; return the text that may be shown now."""
        ...

    async def end(self) -> str:
        """Return the rest of the report."""
        ...

    @property
    def marks(self) -> Sequence[ReportMark]:
        """The marks of the report as it was released. Read it after `end`."""
        ...

    async def judge_claims(self) -> ClaimReport:
        """Return the verdicts on the claims of the report as it was released. Call it after `end`."""
        ...


class ReportDraft:
    """Checks a report block by block while the model writes it, and releases the blocks that pass.

    From the first block with a finding on, all blocks are held back until the report is complete; with a
    `judge` from the first block with a claim that the rules leave open. Then the judge is asked about these,
    `repair` is called once, remaining findings are marked in the text, and a list of the cited sources
    replaces the list that the model wrote. `at_hand` are the sources to list if the report cites none.
    """

    def __init__(
        self,
        check: ReportCheck,
        repair: RepairPassages | None = None,
        *,
        judge: JudgeBlocks | None = None,
        locale: str = "",
        at_hand: Collection[int] = (),
    ) -> None:
        self._check = check
        self._repair = repair
        self._judge = judge
        self._locale = locale
        self._at_hand = at_hand
        self._blocks = Blocks()
        self._own_list = ModelSourceList()
        self._held_back: list[ReportPassage] = []
        self._shown_parts: list[str] = []
        self._released = ReleasedBlocks()

    async def feed(self, text: str) -> str:
        """Take the next part of the report; return the text that may be shown now."""
        return await self._check_blocks(self._remove_own_list(self._blocks.feed(text)))

    async def end(self) -> str:
        """Return the rest of the report. It makes at most one model call, beside those of the judge."""
        rest = [await self._check_blocks([*self._remove_own_list(self._blocks.end()), *self._own_list.end()])]
        await self._judge_passages()
        for passage in await self._repair_passages():
            rest.append(self._released.add(passage.text, passage.findings))
        self._shown_parts += rest[1:]
        return "".join(rest) + await self._format_sources()

    def _remove_own_list(self, blocks: Sequence[str]) -> list[str]:
        return [left for block in blocks if not _is_left_out(block) for left in self._own_list.feed(block)]

    async def _check_blocks(self, blocks: Sequence[str]) -> str:
        ready: list[str] = []
        for block in map(_mask, blocks):
            findings = await self._check.findings(block)
            if findings or self._held_back or await self._waits_for_judge(block):
                self._held_back.append(ReportPassage(block, findings))
            else:
                ready.append(self._released.add(block))
        self._shown_parts += ready
        return "".join(ready)

    @property
    def marks(self) -> Sequence[ReportMark]:
        """The marks of the report as it was released."""
        return self._released.marks

    async def judge_claims(self) -> ClaimReport:
        """Return the verdicts on the claims of the report as it was released."""
        return await self._check.claim_report(self._released.texts)

    async def _waits_for_judge(self, block: str) -> bool:
        return self._judge is not None and bool(await self._check.find_pending(block))

    async def _judge_passages(self) -> None:
        """Ask the judge about what is held back; its findings join those of the rules."""
        if self._judge is None or not self._held_back:
            return
        await self._judge([passage.text for passage in self._held_back])
        self._held_back = [await self._add_wrong_claims(passage) for passage in self._held_back]

    async def _add_wrong_claims(self, passage: ReportPassage) -> ReportPassage:
        """Return a passage with its claims as the judge sees them; its citations are not looked up again."""
        others = [one for one in passage.findings if one.citation.kind != "claim"]
        findings = [*others, *await self._check.find_wrong_claims(passage.text)]
        ordered = sorted(findings, key=lambda one: (one.citation.end, one.citation.start))
        return ReportPassage(passage.text, ordered)

    async def _repair_passages(self) -> list[ReportPassage]:
        failing = [index for index, passage in enumerate(self._held_back) if passage.findings]
        if failing and self._repair is not None:
            replies = await self._repair([self._held_back[index] for index in failing])
            texts = [_mask(replies.get(place, "")).strip() for place in range(len(failing))]
            if self._judge is not None:
                # Else a repair would pass that only words a wrong claim in another way.
                await self._judge([*filter(None, texts)])
            for text, index in zip(texts, failing, strict=True):
                if text:
                    self._held_back[index] = await self._choose_passage(self._held_back[index], text)
        return self._held_back

    async def _choose_passage(self, passage: ReportPassage, reply: str) -> ReportPassage:
        """Return the model's reply if it has fewer findings than the passage, else the passage."""
        ending = passage.text[len(passage.text.rstrip()) :]
        findings = await self._check.findings(reply)
        if len(findings) >= len(passage.findings):
            return passage
        if not await is_repair(passage.text, passage.findings, reply, self._check):
            return passage
        return ReportPassage(reply + ending, findings)

    async def _format_sources(self) -> str:
        report = "".join(self._shown_parts)
        if not report.strip():
            return ""
        numbers = await self._check.cited(report) or await self._check.cited("".join(self._own_list.taken))
        sources = [self._check.sources[number] for number in sorted(numbers or self._at_hand)]
        heading = self._own_list.heading or heading_for(report, self._locale)
        added = format_source_list(sources, heading)
        return "\n" * max(2 - _newlines_behind(report), 0) + added if added else ""


def _is_left_out(block: str) -> bool:
    """Return whether a block is no text of a report: a score of its claims, or a note that a tool gave."""
    return is_score(block) or is_state(block)


def _mask(block: str) -> str:
    """Return a block without the secrets in its addresses; most blocks have none."""
    return hide_secrets(block) if "://" in block else block


def _newlines_behind(text: str) -> int:
    return len(text) - len(text.rstrip("\n"))


LEAST_SHARE = 0.5
"""The smallest length of a repair, as a share of the characters without findings."""
_KINDS = {
    "table": re.compile(r"[ \t]*\|"),
    "list": re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]"),
    "heading": re.compile(r" {0,3}#{1,6}[ \t]"),
}


async def is_repair(
    passage: str, findings: Iterable[UnverifiedCitation], reply: str, check: ReportCheck
) -> bool:
    """Return whether `reply` preserves the parts of `passage` that have no findings.

    It must not leave a code block open, change the kind of a block (table, list, heading, paragraph), lose a
    citation without findings, cite a source for what does not stand there, or be much shorter than the parts
    without findings.
    """
    objected = [finding.citation for finding in findings]
    doubted = {number for one in objected if one.kind in ("quotation", "claim") for number in one.numbers}
    unobjected = len(passage.strip()) - sum(one.end - one.start for one in _outermost(objected))
    if len(reply) < LEAST_SHARE * unobjected or _block_kinds(reply) != _block_kinds(passage):
        return False
    if not await check.cited(passage) - doubted <= await check.cited(reply):
        return False
    return await check.supports_new_citations(passage, reply)


def _outermost(citations: Iterable[Citation]) -> Iterator[Citation]:
    """Yield the citations that are not inside of another one: a claim has its citations in it."""
    end = 0
    for one in sorted(citations, key=lambda one: (one.start, -one.end)):
        if one.start >= end:
            yield one
            end = one.end


def _block_kinds(text: str) -> set[str]:
    """Return the kinds of blocks in `text` beside paragraphs; an open code block is a kind of its own."""
    fences = MarkdownScanner()
    prose: list[str] = []
    for line in text.splitlines():
        if not fences.take(line).is_code:
            prose.append(line)
    kinds = {kind for kind, begin in _KINDS.items() if any(map(begin.match, prose))}
    return kinds | {"open code"} if fences.mark else kinds


MAX_AHEAD = 8_000
"""The number of characters of an incomplete block that may be shown.

The rest waits for the end of the block.
"""
_MAY_BE_AN_ADDRESS = re.compile(r"[/&\\]|www|\]\(|\w:\w", re.IGNORECASE)


class StatedDraft:
    """A draft with a line, before its sources, about each gap of the steps that it does not speak of."""

    def __init__(self, draft: Draft, results: Sequence[StepResult], locale: str = "") -> None:
        self._draft = draft
        self._locale = locale
        self._lacking = [one for one in results if not one.done or one.lacks]
        self._shown: list[str] = []

    async def feed(self, text: str) -> str:
        """Take the next part of the report; return the text that may be shown now."""
        self._shown.append(await self._draft.feed(text))
        return self._shown[-1]

    @property
    def marks(self) -> Sequence[ReportMark]:
        """The marks of the report as it was released."""
        return self._draft.marks

    async def judge_claims(self) -> ClaimReport:
        """Return the verdicts on the claims of the report as it was released."""
        return await self._draft.judge_claims()

    async def end(self) -> str:
        """Return the rest of the report."""
        rest = await self._draft.end()
        report = "".join([*self._shown, rest])
        if not report.strip():
            return rest
        found = _LIST_AT_END.search(rest)
        own, listed = (rest[: found.start()], found[0].lstrip("\n")) if found else (rest, "")
        before = "".join([*self._shown, own])
        omitted = [one for one in self._lacking if not is_stated(before, one)]
        if not omitted:
            return rest
        gap = "\n" * max(2 - _newlines_behind(before), 0)
        lines = [state_gap(one, before, self._locale) for one in omitted]
        return own + gap + "\n\n".join([*lines, *filter(None, [listed])])


_MAY_CITE = re.compile(r"[/&\\\[【［<>\"“”„‟«»‹›「」『』〝〟｢｣❝❛＂'’‘‚]|www|\w:\w", re.IGNORECASE)


_DIGIT = re.compile(r"\d")


class UncitedDraft:
    """Checks the addresses of a report without sources while the model writes it.

    Text is shown up to the first character that may belong to an address. If the check includes words, text
    is shown up to the first character that may begin a citation or a quotation, and if it includes claims, up
    to the first digit. The rest waits for the end of the block.
    """

    def __init__(self, check: ReportCheck) -> None:
        self._check = check
        self._waits = _MAY_CITE if check.checks_words else _MAY_BE_AN_ADDRESS
        self._blocks = Blocks()
        self._shown_characters = 0
        self._released = ReleasedBlocks()

    async def feed(self, text: str) -> str:
        """Take the next part of the report; return the text that may be shown now."""
        ready = [await self._rest_of(block) for block in self._blocks.feed(text)]
        if self._blocks.pending_characters <= MAX_AHEAD:
            begun = self._blocks.pending
            if may_be_score(begun) or may_be_state(begun):
                return "".join(ready)
            if not self._waits.search(begun) and not (self._check.checks_claims and _DIGIT.search(begun)):
                ready.append(begun[self._shown_characters :])
                self._shown_characters = len(begun)
        return "".join(ready)

    async def end(self) -> str:
        """Return the rest of the report."""
        return "".join([await self._rest_of(block) for block in self._blocks.end()])

    @property
    def marks(self) -> Sequence[ReportMark]:
        """The marks of the report as it was released."""
        return self._released.marks

    async def judge_claims(self) -> ClaimReport:
        """Return the verdicts on the claims of the report as it was released."""
        return await self._check.claim_report(self._released.texts)

    async def _rest_of(self, block: str) -> str:
        # The shown part contains nothing that could be marked, so no mark can lie before its end. That holds
        # for the next block, too, if the end of this one arrived together with text of the next.
        if _is_left_out(block):
            return ""
        block = _mask(block)
        shown, self._shown_characters = self._shown_characters, max(self._shown_characters - len(block), 0)
        return self._released.add(block, await self._check.findings(block))[shown:]


REPAIR_SECONDS = 120.0
MAX_PASSAGES = 20
MAX_OBJECTIONS = 5
"""The limit of findings that are reported for one passage."""
MAX_SOURCES = 40
CLAIM_CHARACTERS = 400
"""Characters of a wrong claim that the repair request repeats."""
SHARE_OF_TIME = 0.8
"""The share of the run's remaining time for repairs, because the report must be delivered within that time.
"""
_PASSAGE = re.compile(r'<passage number="(\d{1,4})">')


@dataclass(frozen=True, slots=True)
class ReportRepair:
    """Asks `model` for new passages in one call, which counts towards the budget but is not streamed to
    clients.

    If the budget or the time is used up, or the model fails, passages stay unchanged.
    """

    model: BaseChatModel
    check: ReportCheck

    async def __call__(self, passages: Sequence[ReportPassage]) -> Mapping[int, str]:
        meter = run_scope().meter
        left = meter.seconds_left if meter else REPAIR_SECONDS
        if left <= 0:
            return {}
        try:
            async with asyncio.timeout(min(REPAIR_SECONDS, SHARE_OF_TIME * left)):
                request = await self._build_request(passages[:MAX_PASSAGES])
                prompt = [SystemMessage(render("repair")), HumanMessage(request)]
                answer = await send_within_window(self.model, prompt, self._send)
        except (ModelError, BudgetExhausted, TimeoutError):
            return {}
        return _parse_passages(without_thoughts(answer.text))

    async def _send(self, messages: Sequence[BaseMessage]) -> AIMessage:
        # Hides the answer from streams: LangGraph's skip this tag, `Translator` skips this source.
        config: RunnableConfig = {"metadata": {"lc_source": REPAIR_SOURCE}, "tags": ["nostream"]}
        return await self.model.ainvoke(list(messages), config=config)

    async def _build_request(self, passages: Sequence[ReportPassage]) -> str:
        sources = list(self.check.sources.values())[:MAX_SOURCES]
        parts = [f"The sources:\n{fence_untrusted(format_sources(sources))}"]
        for number, passage in enumerate(passages, start=1):
            parts.append(f'<passage number="{number}">\n{passage.text.strip()}\n</passage>')
            parts += [await self._describe_finding(finding) for finding in passage.findings[:MAX_OBJECTIONS]]
        return "\n\n".join(parts)

    async def _describe_finding(self, finding: UnverifiedCitation) -> str:
        line = f"Wrong in it: {finding.reason}"
        if finding.citation.kind == "claim":
            line = f"{line}\nThe claim: {shorten(finding.citation.text, CLAIM_CHARACTERS)}"
            passage = fence_untrusted(finding.passage) if finding.passage else ""
            return f"{line}\nWhat stands there:\n{passage}" if passage else line
        if finding.citation.kind != "quotation":
            return line
        texts = await self.check.texts(finding.citation)
        near = await asyncio.to_thread(find_excerpt, finding.citation.text, texts)
        return f"{line}\nWhat stands there:\n{fence_untrusted(near)}" if near else line


def _parse_passages(answer: str) -> dict[int, str]:
    """Return the passages of an answer by index, from 0; if one occurs twice, the last."""
    _, *pieces = _PASSAGE.split(answer)
    return {
        int(number) - 1: text.partition("</passage>")[0].strip()
        for number, text in zip(pieces[::2], pieces[1::2], strict=True)
        if "</passage>" in text
    }


class CheckedReportModel(BaseChatModel):
    """A chat model that passes the answer of `model` through a draft; each call gets a new draft.

    Callbacks, events and the answer contain only the checked text, which ends with its score. Thoughts pass
    immediately; usage and finish reason pass unchanged. Only asynchronous calls are supported.
    """

    # LangChain makes the representation of each model for traces, which takes long for nested ones.
    model: BaseChatModel = Field(exclude=True, repr=False)
    draft: Callable[[], Draft] = Field(exclude=True, repr=False)
    locale: str = Field(default="", exclude=True)
    cache: Any = Field(default=False, exclude=True)
    """Caching is off, because the result of the check differs in each run."""

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the wrapped model."""
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
        raise NotImplementedError("Reports are only checked asynchronously. Use ainvoke or astream.")

    async def _agenerate_with_cache(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        with limit_answer(run_manager) if run_manager else nullcontext():
            return await super()._agenerate_with_cache(messages, stop, run_manager, **kwargs)

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
        text += await _report_draft(draft, text, self.locale)
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
        draft, ending, shown = self.draft(), list[ChatGenerationChunk](), list[str]()
        message_id: str | None = None
        stream = cast("Any", self.model._astream(messages, stop, None, **kwargs))
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                message_id = chunk.message.id or message_id
                ready, bare = await draft.feed(chunk.text), _without_text(chunk)
                if ready:
                    shown.append(ready)
                    yield _text_chunk(ready, message_id)
                # The end must come last, so it waits for the text that is still being checked.
                if ending or _is_end(chunk):
                    ending.append(bare)
                elif _has_more(bare):
                    yield bare
        if rest := await draft.end():
            shown.append(rest)
            yield _text_chunk(rest, message_id)
        if score := await _report_draft(draft, "".join(shown), self.locale):
            yield _text_chunk(score, message_id)
        for chunk in ending:
            yield chunk


def _text_chunk(text: str, message_id: str | None) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(content=text, id=message_id))


def _without_text(chunk: ChatGenerationChunk) -> ChatGenerationChunk:
    message = chunk.message.model_copy(update={"content": ""})
    return ChatGenerationChunk(message=message, generation_info=chunk.generation_info)


def _is_end(chunk: ChatGenerationChunk) -> bool:
    return bool((chunk.generation_info or {}).get("finish_reason")) or _is_last(chunk)


def _is_last(chunk: ChatGenerationChunk) -> bool:
    return getattr(chunk.message, "chunk_position", None) == "last"


def _has_more(chunk: ChatGenerationChunk) -> bool:
    """Return whether a chunk has anything beside its text."""
    message = cast("AIMessageChunk", chunk.message)
    return bool(
        message.additional_kwargs
        or message.tool_call_chunks
        or message.usage_metadata
        or message.response_metadata
        or chunk.generation_info
    )


MAX_LISTED = 40
_LIST_AT_END = re.compile(r"(?:\A|\n+)## [^\n]+\n\n(?:- \[\d+\] [^\n]+\n?)+\Z")
"""The list of sources as `format_source_list` writes it."""
_LISTED_NUMBER = re.compile(r"^- \[(\d+)\]", re.MULTILINE)
_ITEM_READERS = frozenset({READ_FILE, READ_ITEM, SEARCH_ITEMS})
"""The tools that show members the conversation's own files, such as the user's."""
_CODE_TOOLS = frozenset({"python_repl_tool", "bash_tool"})
_READ_HERE = ("researcher", "browser")
"""Workers whose results come from the web, so that their quotations must occur in what the run has read."""


class CheckedReport(AgentMiddleware[Any, Any]):
    """Adds sources and findings to the reporter's prompt, and checks the report. Must be innermost.

    `judge` chooses the model that judges the claims which rules leave open; None: nobody does.
    """

    def __init__(self, judge: JudgeChoice | None = None) -> None:
        super().__init__()
        self._judge = judge

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        task = current_task()
        check = await build_source_check(task)
        messages = [*request.messages]
        draft: Callable[[], Draft] = partial(UncitedDraft, check)
        if check.sources:
            repair = ReportRepair(request.model, check)
            model = self._judge.find_model() if self._judge else None
            judge = ClaimJudge(model, check) if model else None
            draft = partial(ReportDraft, check, repair, judge=judge, locale=task.locale)
            if sources := await _choose_sources(check, task):
                messages = _without_source_list(messages, task.history.report, sources)
                listed = fence_untrusted(format_sources(sources))
                messages.insert(-1, HumanMessage(f"The sources, to be cited by number:\n{listed}"))
                if noted := await _format_noted(task, sources, room_of(request.model)):
                    messages.insert(-1, HumanMessage(noted))
        if task.results:
            draft = partial(_build_stated, draft, task.results, task.locale)
        model = CheckedReportModel(model=request.model, draft=draft, locale=task.locale)
        return await handler(request.override(model=model, messages=messages))


async def _format_noted(task: Task, sources: Sequence[Source], room: int) -> str:
    """Return the findings of the run, and those behind the last report; `room` is that of a prompt."""
    evidence = current_evidence()
    findings = await evidence.findings() if evidence is not None else ()
    has_files = task.items_of_thread is not None
    return format_findings(findings, sources, int(FINDINGS_SHARE * room), has_files=has_files)


def _build_stated(draft: Callable[[], Draft], results: Sequence[StepResult], locale: str) -> StatedDraft:
    return StatedDraft(draft(), results, locale)


async def build_source_check(task: Task, tools: Collection[str] | None = _ITEM_READERS) -> ReportCheck:
    """Return the check for the report of `task`; what calls of `tools` (None: of all) returned is given."""
    trusted_texts = (task.request, task.caller, *task.thread_texts)
    said = [result.text for result in task.results if result.agent not in _READ_HERE]
    given, printed = await _read_tool_texts(tools), await _read_tool_texts(_CODE_TOOLS)
    researched = any(result.agent in _READ_HERE for result in task.results)
    evidence = current_evidence()
    record = MemoryEvidence() if evidence is None else evidence
    if not printed:
        return await ReportCheck.of(record, trusted_texts, [*said, *given], researched=researched)
    # What a program has printed counts, and not what its author wrote about it.
    results = [*given, *printed]
    return await ReportCheck.of(record, trusted_texts, results, answers=said, researched=researched)


async def _read_tool_texts(tools: Collection[str] | None) -> list[str]:
    """Return what calls of `tools`, or of all tools, showed the run's members."""
    scope = run_scope()
    rows = await scope.ledger.list_by_run(scope.run_id) if scope.ledger is not None else ()
    chosen = (row for row in rows if tools is None or row.tool_name in tools)
    read = (read_message(row.result, row.tool_name, "") for row in chosen)
    return [one.text for one in read if one is not None and one.status != "error"]


async def find_result_sources(check: ReportCheck, task: Task) -> list[int]:
    """Return the numbers of the sources that the results of `task` cite."""
    numbers: set[int] = set()
    for result in task.results:
        numbers |= await check.cited(result.text)
    return sorted(numbers)


async def _choose_sources(check: ReportCheck, task: Task) -> list[Source]:
    """Return the sources for the prompt: what results and last report cite, then pages, then hits."""
    named = [*await find_result_sources(check, task), *await check.cited(task.history.report)]
    new = [one for one in check.sources.values() if not one.inherited or one.number in named]
    return sorted(new, key=lambda one: (one.number not in named, one.kind != "page"))[:MAX_LISTED]


def _without_source_list(
    messages: Sequence[AnyMessage], report: str, sources: Sequence[Source]
) -> list[AnyMessage]:
    """Return the messages without the source list of the last report, if `sources` has all that it lists."""
    numbers = {one.number for one in sources}
    found = _LIST_AT_END.search(report)
    if found is None or not numbers.issuperset(map(int, _LISTED_NUMBER.findall(found[0]))):
        return [*messages]
    listed = found[0].rstrip()
    return [
        message.model_copy(update={"content": message.content.replace(listed, "", 1)})
        if isinstance(message.content, str)
        else message
        for message in messages
    ]


async def build_unrepaired_draft(task: Task, locale: str) -> Callable[[], Draft]:
    """Return a factory of drafts for `task` that check and list sources, without a repair by the model."""
    check = await build_source_check(task)
    if not check.sources:
        return partial(UncitedDraft, check)
    return partial(ReportDraft, check, locale=locale, at_hand=await find_result_sources(check, task))


async def check_report(task: Task, report: str) -> str:
    """Return a complete report with its findings marked, its sources listed and its score; send its event."""
    draft = (await build_unrepaired_draft(task, task.locale))()
    text = await _run_draft(draft, report)
    return text + await _report_draft(draft, text, task.locale)


async def check_addition(task: Task, text: str) -> str:
    """Return a text that follows the report and its sources, with its findings marked."""
    return await _run_draft(UncitedDraft(await build_source_check(task)), text)


async def _run_draft(draft: Draft, text: str) -> str:
    return await draft.feed(text) + await draft.end()


async def judge_answer(task: Task, answer: str) -> None:
    """Send an event about the claims of an answer that its member has streamed, so that it has no marks.

    What its tools returned counts as given: the figures of a program are no claims about a source. Nothing is
    judged where the calls are not recorded.
    """
    if run_scope().ledger is None:
        return
    check, blocks = await build_source_check(task, None), Blocks()
    await report_claims(
        await check.claim_report([*blocks.feed(answer), *blocks.end()]), (), answer, task.locale
    )


async def _report_draft(draft: Draft, text: str, locale: str) -> str:
    """Send the event about a complete report; return the score to add to its `text`."""
    return await report_claims(await draft.judge_claims(), draft.marks, text, locale)
