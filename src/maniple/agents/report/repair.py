"""Have the writer of a report put right what in it does not hold, once."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig

from maniple.agents.context import within_window
from maniple.agents.fencing import between_marks
from maniple.agents.report.draft import Passage
from maniple.agents.run_scope import run_scope
from maniple.errors import BudgetExhausted, ModelError
from maniple.evidence.check import Finding, SourceCheck
from maniple.evidence.excerpt import excerpt_near
from maniple.evidence.source_list import listed
from maniple.prompts import render
from maniple.text import without_thoughts
from maniple.types import REPAIR_SOURCE

REPAIR_SECONDS = 120.0
MOST_PASSAGES = 20
MOST_OBJECTIONS = 5
"""Told of one passage."""
MOST_SOURCES = 40
SHARE_OF_TIME = 0.8
"""Of what is left of the run's seconds: the report must be handed over within them."""
_PASSAGE = re.compile(r'<passage number="(\d{1,4})">')


@dataclass(frozen=True, slots=True)
class Repair:
    """Asks `model` for new passages in one call, which counts like any and is told to nobody.

    What it cannot be asked for, because the budget or the time is used up or the model fails, stays as it is.
    """

    model: BaseChatModel
    check: SourceCheck

    async def __call__(self, passages: Sequence[Passage]) -> Mapping[int, str]:
        meter = run_scope().meter
        left = meter.seconds_left if meter else REPAIR_SECONDS
        if left <= 0:
            return {}
        try:
            async with asyncio.timeout(min(REPAIR_SECONDS, SHARE_OF_TIME * left)):
                asked = await self._asked(passages[:MOST_PASSAGES])
                prompt = [SystemMessage(render("repair")), HumanMessage(asked)]
                answer = await within_window(self.model, prompt, self._send)
        except (ModelError, BudgetExhausted, TimeoutError):
            return {}
        return _read(without_thoughts(answer.text))

    async def _send(self, messages: Sequence[BaseMessage]) -> AIMessage:
        # Its words are nobody's: LangGraph's streams leave out what has this tag, ours what has this source.
        config: RunnableConfig = {"metadata": {"lc_source": REPAIR_SOURCE}, "tags": ["nostream"]}
        return await self.model.ainvoke(list(messages), config=config)

    async def _asked(self, passages: Sequence[Passage]) -> str:
        sources = list(self.check.sources.values())[:MOST_SOURCES]
        parts = [f"The sources:\n{between_marks(listed(sources))}"]
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
        return f"{line}\nWhat stands there:\n{between_marks(near)}" if near else line


def _read(answer: str) -> dict[int, str]:
    """Return the passages of an answer by their places, from 0; of one that is given twice, the last."""
    _, *pieces = _PASSAGE.split(answer)
    return {
        int(number) - 1: text.partition("</passage>")[0].strip()
        for number, text in zip(pieces[::2], pieces[1::2], strict=True)
        if "</passage>" in text
    }
