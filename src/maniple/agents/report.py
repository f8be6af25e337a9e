"""The reporter's middleware, and checks of complete reports and answers."""

import json
import re
from collections.abc import (
    Callable,
    Collection,
    Sequence,
)
from functools import partial
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import (
    AnyMessage,
    HumanMessage,
    SystemMessage,
)

from maniple.agents.claim_events import report_claims
from maniple.agents.claim_judge import ClaimJudge, JudgeChoice
from maniple.agents.edited_report import EditingDraft, ReportEditor, describe_sections
from maniple.agents.finding_briefing import FINDINGS_SHARE, format_findings
from maniple.agents.long_report import (
    LongReportDraft,
    OutlineReader,
    ReportMaterial,
    SectionWriters,
    offer_outline,
)
from maniple.agents.middleware.base import ModelHandler
from maniple.agents.middleware.call_records import read_message
from maniple.agents.middleware.fencing import fence_untrusted
from maniple.agents.report_draft import LIST_AT_END, Draft, ReportDraft, StatedDraft, UncitedDraft
from maniple.agents.report_model import CheckedReportModel, report_draft_claims
from maniple.agents.report_repair import ReportRepair
from maniple.agents.task import StepResult, Task, current_task
from maniple.claims.report_check import ReportCheck, TeamTexts
from maniple.config.mcp_settings import is_of_server
from maniple.errors import FileError
from maniple.evidence import MemoryEvidence, Source
from maniple.evidence.blocks import Blocks
from maniple.evidence.source_list import format_sources
from maniple.llms.context_windows import room_of
from maniple.sandbox.notes import drop_notes, read_notes
from maniple.scope.run_scope import run_scope
from maniple.store import ToolCallRecord
from maniple.tools.evidence import current_evidence
from maniple.tools.files import READ_FILE
from maniple.tools.item_search import SEARCH_ITEMS
from maniple.tools.items import READ_ITEM
from maniple.workspace.mirrors import is_team_record
from maniple.workspace.safe_open import split_path

MAX_LISTED = 40
_LISTED_NUMBER = re.compile(r"^- \[(\d+)\]", re.MULTILINE)
_ITEM_READERS = frozenset({READ_FILE, READ_ITEM, SEARCH_ITEMS})
"""The tools that show members the conversation's own files, such as the user's."""
_CODE_TOOLS = frozenset({"python_repl_tool", "bash_tool"})
_READ_HERE = ("researcher", "browser")
"""Workers whose results come from the web, so that their quotations must occur in what the run has read."""


class CheckedReport(AgentMiddleware[Any, Any]):
    """Adds sources and findings to the reporter's prompt, and checks the report. Must be innermost.

    `judge` chooses the model that judges the claims; None: nobody does. `parallel`
    sections of a long report are written at the same time.
    """

    def __init__(self, judge: JudgeChoice | None = None, *, parallel: int = 4) -> None:
        super().__init__()
        self._judge = judge
        self._parallel = parallel

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        task = current_task()
        check = await build_source_check(task)
        messages, sources = [*request.messages], list[Source]()
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
        if offer := await describe_sections(task.history.report):
            messages.insert(-1, HumanMessage(offer))
            draft = partial(_build_editing, draft, ReportEditor(request.model, [*messages], task))
        if offer := offer_outline(task.style, len(sources)):
            messages.insert(-1, HumanMessage(offer))
            reader = OutlineReader(request.model, [*messages])
            material = await _gather_material(task, request.messages, sources, check)
            writers = SectionWriters(request.model, material, self._parallel)
            draft = partial(_build_long, draft, reader, writers)
        model = CheckedReportModel(model=request.model, draft=draft, locale=task.locale)
        return await handler(request.override(model=model, messages=messages))


async def _gather_material(
    task: Task, messages: Sequence[AnyMessage], sources: Sequence[Source], check: ReportCheck
) -> ReportMaterial:
    """Return what the sections of a long report are written from."""
    evidence = current_evidence()
    findings = await evidence.findings() if evidence is not None else ()
    system = [one for one in messages if isinstance(one, SystemMessage)]
    return ReportMaterial(task, system, {one.number: one for one in sources}, findings, check.cited)


def _build_long(
    draft: Callable[[], Draft], reader: OutlineReader, writers: SectionWriters
) -> LongReportDraft:
    return LongReportDraft(draft(), reader, writers, is_required=writers.material.task.style == "long")


async def _format_noted(task: Task, sources: Sequence[Source], room: int) -> str:
    """Return the findings of the run, and those behind the last report; `room` is that of a prompt."""
    evidence = current_evidence()
    findings = await evidence.findings() if evidence is not None else ()
    has_files = task.items_of_thread is not None
    return format_findings(findings, sources, int(FINDINGS_SHARE * room), has_files=has_files)


def _build_stated(draft: Callable[[], Draft], results: Sequence[StepResult], locale: str) -> StatedDraft:
    return StatedDraft(draft(), results, locale)


def _build_editing(draft: Callable[[], Draft], editor: ReportEditor) -> EditingDraft:
    return EditingDraft(draft(), editor)


async def build_source_check(task: Task, tools: Collection[str] | None = _ITEM_READERS) -> ReportCheck:
    """Return the check for the report of `task`; what calls of `tools` (None: of all) returned is given.

    What MCP servers and functions of the client returned is, too: it stands in no source of the run.
    """
    trusted_texts = (task.request, task.caller, *task.thread_texts)
    said = [result.text for result in task.results if result.agent not in _READ_HERE]
    functions = {one.name for one in run_scope().client_tools}
    shown = await _read_tool_texts(None if tools is None else {*tools, *_CODE_TOOLS, *functions})
    outputs = [text for name, text in shown if name in _CODE_TOOLS]
    printed, notes = [*map(drop_notes, outputs)], [*map(read_notes, outputs)]
    given = [text for name, text in shown if name not in _CODE_TOOLS]
    researched = any(result.agent in _READ_HERE for result in task.results)
    evidence = current_evidence()
    record = MemoryEvidence() if evidence is None else evidence
    # What a program has printed counts, and not what its author or the sandbox wrote about it.
    results, answers = ([*given, *printed], [*said, *notes]) if printed else ([*said, *given], [])
    own = TeamTexts(answers, task.thread_reports)
    return await ReportCheck.of(record, trusted_texts, results, said=own, researched=researched)


async def _read_tool_texts(tools: Collection[str] | None) -> list[tuple[str, str]]:
    """Return what calls of `tools` and MCP servers, or of all tools, showed members, with its name.

    A source, a result or a report that was read again is no result of the run.
    """
    scope = run_scope()
    rows = await scope.ledger.list_by_run(scope.run_id) if scope.ledger is not None else ()
    chosen = (
        row
        for row in rows
        if (tools is None or row.tool_name in tools or is_of_server(row.tool_name))
        and not _reads_team_record(row)
    )
    read = ((row.tool_name, read_message(row.result, row.tool_name, "")) for row in chosen)
    return [(name, one.text) for name, one in read if one is not None and one.status != "error"]


def _reads_team_record(row: ToolCallRecord) -> bool:
    if row.tool_name not in _ITEM_READERS:
        return False
    path = json.loads(row.arguments).get("path")
    try:
        return isinstance(path, str) and is_team_record("/".join(split_path(path)))
    except FileError:
        return False  # no file has this path, so nothing was read


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
    found = LIST_AT_END.search(report)
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


async def check_report(task: Task, report: str, *, is_scored: bool = True) -> str:
    """Return a complete report with its findings marked, its sources listed and its score; send its event.

    One that is not scored has neither score nor event: no model has claimed anything in it.
    """
    draft = (await build_unrepaired_draft(task, task.locale))()
    text = await _run_draft(draft, report)
    return text + await report_draft_claims(draft, text, task.locale) if is_scored else text


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
