"""Suggests questions after the answer of a run, on request. The run and its conversation stay as they are."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from maniple.errors import BudgetExhausted, ModelError
from maniple.graph.suggested_questions import suggest_questions
from maniple.llms import ShapeError
from maniple.llms.efforts import use_effort
from maniple.runs.beside_calls import call_beside_graph
from maniple.runs.engine import NoSuggestions, SuggestedQuestions
from maniple.runs.request import RunRequest
from maniple.runs.run_tasks import RunTasks
from maniple.runs.scheduling import ThreadLocks, make_stopping
from maniple.scope.budget import Budget, UsageMeter
from maniple.scope.run_scope import current_meter
from maniple.store import RunRecord

SUGGESTION_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class QuestionSuggester:
    """Asks the basic model of a run for questions, one request of a thread at a time.

    The usage counts for the daily limits of the run's owner, and not for the run, which has ended.
    """

    tasks: RunTasks
    _asking: ThreadLocks = field(default_factory=ThreadLocks)

    async def suggest(self, record: RunRecord, answer: str) -> SuggestedQuestions:
        """Return questions that follow from `answer`, the Markdown of the run's report.

        Raises `NoSuggestions`, `DailyLimitReached`, `UnconfiguredModel`, `ServiceStopping` or `StoreError`.
        """
        if self.tasks.admission.is_closed:
            raise make_stopping()
        async with self._asking.acquire(record.thread_id):
            quotas, call_id = self.tasks.driver.quotas, str(uuid4())
            quota = await quotas.refresh_owner(record.owner)
            quota.raise_if_used_up()
            prices = self.tasks.services.config.prices
            meter = UsageMeter(Budget(seconds=SUGGESTION_SECONDS), prices, shared=quota)
            quota.attach(call_id, meter)
            try:
                effortless = set[str]()
                questions = await self._ask(record, answer, meter, effortless)
            finally:
                try:
                    async with quota.writing(call_id):
                        await self.tasks.store.runs.add_usage(record.owner, meter.answered, time.time())
                finally:
                    quota.forget(call_id, meter)
        return SuggestedQuestions(questions, meter.answered, sorted(effortless))

    async def _ask(
        self, record: RunRecord, answer: str, meter: UsageMeter, effortless: set[str]
    ) -> Sequence[str]:
        services, request = self.tasks.services, RunRequest.of(record)
        async with services.teams.use(request.model) as (team, source):
            await source.load()

            async def ask() -> Sequence[str]:
                async with current_meter().enforce_time_limit():
                    return await suggest_questions(team.basic_model, request.messages[-1].text, answer)

            meter.start()
            try:
                with use_effort(request.options.effort, effortless):
                    found = await call_beside_graph("suggestions", ask, record, meter, services.telemetry)
            except (BudgetExhausted, ModelError) as error:
                raise NoSuggestions(f"The model made no suggestions: {error}") from error
            except ShapeError as error:
                raise NoSuggestions(
                    "The model made no suggestions that can be used. Try again, or ask with your own words."
                ) from error
        return [services.config.redactor.text(one) for one in found]
