"""The model that judges the claims of a report: when it is asked, and its calls."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage

from maniple.agents.middleware.fencing import fence_untrusted
from maniple.claims.judging import (
    ANSWER_SCHEMA,
    JudgeAnswer,
    JudgeBatch,
    JudgeRounds,
    PendingClaim,
    keep_rule,
)
from maniple.claims.report_check import ReportCheck
from maniple.errors import BudgetExhausted, ModelError
from maniple.evidence.reasons import ReasonCode, explain
from maniple.llms import ChatModels, Shape, ShapeError, ask_for, capabilities_of, hide_call
from maniple.llms.context_windows import room_of, text_tokens
from maniple.llms.endpoints import with_fallbacks
from maniple.prompts import render
from maniple.scope.run_scope import run_scope
from maniple.types import JUDGE_SOURCE, JudgeMode, LLMType

JUDGE_SECONDS = 180.0
"""The time for judging the claims of a report."""
SHARE_OF_TIME = 0.5
"""The share of the run's remaining time for the judge. The repair and the end of the report follow."""
ROOM_SHARE = 0.6
"""The share of the room for prompts that a request may have; an answer may have as many tokens as claims."""
MAX_JUDGED = 400
"""Claims of a report that a judge is asked about; those that a rule supports are left out first."""
MAX_CONCURRENT = 4
"""Requests that are sent at the same time."""
_SHAPE = Shape("verdicts", dict(ANSWER_SCHEMA), JudgeAnswer)


@cache
def name_prompt() -> str:
    """Return a name for the judge's prompt that changes with it."""
    return hashlib.blake2s(render("judge").encode(), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """Which model judges claims, and whether it does (`evidence.judge`)."""

    mode: JudgeMode
    models: ChatModels
    llm: LLMType = "basic"

    def find_model(self) -> BaseChatModel | None:
        """Return the model that judges; None if nobody does."""
        if self.mode == "off":
            return None
        model = self.models.get(self.llm)
        return model if self.mode == "on" or not find_objection(model) else None


def find_objection(model: BaseChatModel) -> str:
    """Return why `model` does not judge claims by itself; "" if it was measured to do so well.

    Its fallbacks must have been measured, too, as each of them may be the one that answers.
    """
    for one in with_fallbacks(model):
        measured = capabilities_of(one).judging
        found = "it was not measured" if measured is None else measured.find_objection(name_prompt())
        if found:
            return found if one is model else f"its fallback {getattr(one, 'endpoint', '')}: {found}"
    return ""


@dataclass(frozen=True, slots=True)
class ClaimJudge:
    """Asks `model` about the claims of blocks; `check` takes the verdicts.

    There is at most one request for 20 claims of a report, but one for each time that it is called. The
    requests count towards the budget and are not streamed to clients. If budget or time are used up, or the
    model fails, claims stay as the rules have left them, with the reason.
    """

    model: BaseChatModel
    check: ReportCheck

    async def __call__(self, blocks: Sequence[str]) -> None:
        claims = await self.check.find_pending(*blocks)
        if claims:
            chosen, left_out = _choose(claims)
            rounds = await self.check.open_judging(chosen)
            await self._ask(rounds)
            self.check.take_verdicts(rounds.verdicts())
            self.check.take_verdicts(
                (one, keep_rule(one.rule, explain(ReasonCode.MANY_CLAIMS, most=str(MAX_JUDGED))))
                for one in left_out
            )

    async def _ask(self, rounds: JudgeRounds) -> None:
        meter = run_scope().meter
        left = meter.seconds_left if meter else JUDGE_SECONDS
        if left <= 0:
            rounds.stop(explain(ReasonCode.TIME_OVER))
            return
        seconds = min(JUDGE_SECONDS, SHARE_OF_TIME * left)
        try:
            async with asyncio.timeout(seconds):
                await JudgeCalls(self.model, rounds).run()
        except TimeoutError:
            rounds.stop(explain(ReasonCode.TOO_SLOW, seconds=f"{seconds:.0f}"))


def _choose(claims: Sequence[PendingClaim]) -> tuple[list[PendingClaim], list[PendingClaim]]:
    """Return the claims that are asked about, and those behind the limit, both in reading order."""
    ordered = sorted(range(len(claims)), key=lambda place: claims[place].rule.kind == "supported")
    parts = sorted(ordered[:MAX_JUDGED]), sorted(ordered[MAX_JUDGED:])
    chosen, left_out = ([claims[place] for place in part] for part in parts)
    return chosen, left_out


@dataclass(frozen=True, slots=True)
class JudgeCalls:
    """The calls of a judge, until each claim of `rounds` has a verdict or is given up."""

    model: BaseChatModel
    rounds: JudgeRounds
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_CONCURRENT))
    _taking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self) -> None:
        """Ask in rounds; raises nothing but what cancels it."""
        prompt = render("judge")
        room = int(ROOM_SHARE * room_of(self.model)) - text_tokens(prompt)
        while batches := await asyncio.to_thread(self.rounds.next_batches, room, text_tokens):
            async with asyncio.TaskGroup() as calls:
                for batch in batches:
                    calls.create_task(self._judge(batch, prompt))

    async def _judge(self, batch: JudgeBatch, prompt: str) -> None:
        async with self._places:
            if all(case.is_over for case in batch.cases):
                return
            try:
                answer = await self._send(batch, prompt)
            except ShapeError as error:
                self.rounds.refuse(batch, explain(ReasonCode.NO_JSON), str(error))
            except BudgetExhausted:
                self.rounds.stop(explain(ReasonCode.BUDGET_USED))
            except ModelError as error:
                self.rounds.stop(explain(ReasonCode.MODEL_FAILED, error=error.code), batch)
            else:
                async with self._taking:
                    await asyncio.to_thread(self.rounds.take, batch, answer)

    async def _send(self, batch: JudgeBatch, prompt: str) -> JudgeAnswer:
        messages = [SystemMessage(prompt), HumanMessage(f"The claims:\n{fence_untrusted(batch.text)}")]
        # It passes on what it does not have.
        hidden = cast("BaseChatModel", self.model.with_config(hide_call(JUDGE_SOURCE)))
        answer, _ = await ask_for(hidden, messages, _SHAPE, repairs=0)
        return answer
