"""Run the independent steps of a plan concurrently, in waves.

A wave is one superstep of the graph: the supervisor sends all open steps to their members. Each invocation
of a member's node waits, in process, until the steps that its step needs are over. It works on its step to
the end: the lead decides whether a failed step is tried again, and a step that the user changes begins again.
Then the invocation takes an open step of its member that was added meanwhile. A step that cannot begin in
this wave, such as one that was reassigned to another member, stays open for the next wave.

Every attempt and every decision is a call of LangGraph's `@task`, whose record is stored when it ends. After
a restart the recorded calls return their stored results, so only interrupted calls run again, and no decision
is made twice.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypedDict, cast

from langchain_core.callbacks import adispatch_custom_event
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.func import task  # pyright: ignore[reportMissingTypeStubs] - it has types
from langgraph.types import Command, Interrupt, Send, interrupt

from maniple.agents import Roles
from maniple.errors import BudgetExhausted
from maniple.graph.invocation import enter_scope
from maniple.graph.lead import report_decision
from maniple.graph.plan import PlanProgress, TrackedStep
from maniple.graph.plan_events import as_shown, follow_inbox, send_plan
from maniple.graph.state import PrivateState, State, make_update, private_of, with_private
from maniple.graph.steering import find_replanning
from maniple.graph.step_records import LeadDecision, StepRecord, apply_records, is_effective, read_records
from maniple.langgraph_internals import (
    graph_namespace,
    is_resuming,
    read_checkpoint,
    store_result_of_call,
    writes_of,
)
from maniple.scope.answers import UserAnswer
from maniple.scope.inbox import Inbox, OpenQuestion, run_unless_stopped
from maniple.scope.run_scope import RunScope, current_meter, run_scope
from maniple.types import AGENT_MARK, STEP_INTERRUPT, STEP_RESUMED, Worker

_LEAD = "supervisor"
_LAST = LeadDecision(decision="continue_without")
"""The decision on a failure that happens after the lead has ended the wave."""


class StepOrder(TypedDict):
    """When a step begins in a wave. The numbers are positions in the plan, from 1."""

    after: list[int]
    """The steps that are over before it begins: their results are needed, or both use the same resource."""
    beside: list[int]
    """The steps that begin together with it, at the beginning of the wave."""


def can_run_parallel(progress: PlanProgress, roles: Roles) -> bool:
    """Return whether two of the open steps need not wait for each other."""
    before: dict[int, set[int]] = {}
    for step_id, direct in _find_earlier(progress, roles).items():
        before[step_id] = direct.union(*(before[number] for number in direct))
    return any(len(earlier) < place for place, earlier in enumerate(before.values()))


def order_of_wave(progress: PlanProgress, roles: Roles, limit: int) -> list[StepOrder]:
    """Return when each step of a plan that has not begun will begin in its first wave, in the plan's order.

    At most `limit` steps run concurrently. The report, which is in no wave, begins after all other steps.
    """
    earlier = _find_earlier(progress, roles)
    places = {step.id: place for place, step in enumerate(progress.steps, start=1)}
    first = [step_id for step_id, direct in earlier.items() if not direct][:limit]
    return [
        StepOrder(
            after=sorted(places[one] for one in earlier.get(step.id, earlier)),
            beside=[places[one] for one in first if step.id in first and one != step.id],
        )
        for step in progress.steps
    ]


def _find_earlier(progress: PlanProgress, roles: Roles) -> dict[int, set[int]]:
    """Return, by the ids of the open steps, the ids of the open steps that each waits for directly."""
    work = progress.open_work()
    ids = {step.id for step in work}
    earlier: dict[int, set[int]] = {}
    for step in work:
        direct = {one.id for one in progress.given_to(step) if one.id in ids}
        earlier[step.id] = direct | {one.id for one in work if one.id in earlier and _share(one, step, roles)}
    return earlier


def send_wave(state: State, progress: PlanProgress) -> Command[Any]:
    """Return the command that sends all open steps to their members."""
    work = progress.open_work()
    for step in work:
        if all(progress.is_over(one) for one in progress.given_to(step)):
            progress = progress.with_step(step.id, status="in_progress", reason=step.reason)
    number = private_of(state).get("wave", 0) + 1
    sent = [step.id for step in work]
    plan = progress.to_state()
    common = with_private(state, plan=plan, wave=number, sent=sent, ended=None)
    sends = [Send(step.agent_name, with_private(common, step=step.id)) for step in work]
    return Command(goto=sends, update=make_update(plan=plan, wave=number, ended=None, next=""))


def _join_wave(
    waves: dict[str, tuple[int, Any]], graph: str, number: int, make: Callable[[], "StepWave"]
) -> "StepWave":
    """Return the wave with this number of a graph; the first invocation of a wave makes it."""
    if graph not in waves or waves[graph][0] != number:
        waves[graph] = number, make()
    return waves[graph][1]


def _share(one: TrackedStep, other: TrackedStep, roles: Roles) -> bool:
    """Return whether both steps need the same exclusive resource."""
    return bool(roles[one.agent_name].resources & roles[other.agent_name].resources)


@dataclass(frozen=True, slots=True)
class Waves:
    """Lets the invocations of a wave work together."""

    roles: Roles
    limit: int

    @asynccontextmanager
    async def join(self, state: State, members: Sequence[Worker]) -> AsyncGenerator["StepInvocation"]:
        """Yield the invocation of the step that was sent, after restoring records of earlier executions."""
        private, scope, graph = private_of(state), run_scope(), graph_namespace()
        own = private.get("step", 0)

        def make() -> StepWave:
            return StepWave(self, private, members, scope.inbox)

        wave = _join_wave(scope.waves, graph, private.get("wave", 0), make)
        is_over = is_paused = False
        try:
            await wave.restore()
            wave.enter(own)
            scope.inbox.show_plan = wave.shown
            invocation = StepInvocation(wave, own, scope)
            await invocation.replay()
            async with follow_inbox(scope.inbox, wave.show_changes):
                yield invocation
            is_over = True
        except GraphBubbleUp:
            is_over = is_paused = True  # it waits for the user; the others continue
            raise
        finally:
            if not is_over and scope.waves.get(graph, (0, None))[1] is wave:
                del scope.waves[graph]  # its next execution starts from the stored records
            wave.leave(own, is_paused=is_paused)


class StepWave:
    """The current plan of a wave, and which invocation works on which step."""

    def __init__(self, rules: Waves, private: PrivateState, members: Sequence[Worker], inbox: Inbox) -> None:
        self.inbox = inbox
        self.records: dict[tuple[int, int], StepRecord] = {}
        """The records of all calls, by invocation and index."""
        self.at_work: set[int] = set()
        """The ids of the steps that are running."""
        self.deciding = asyncio.Lock()
        """Held while the lead decides."""
        self._rules, self._members = rules, members
        self._base = PlanProgress.from_state(private.get("plan") or {})
        self._sent = frozenset(private.get("sent", ()))
        self._claims = {step_id: step_id for step_id in self._sent}
        """Step id to the invocation that is responsible for it; an unclaimed step has no entry."""
        self._paused: set[int] = set()
        """Invocations that wait for the user. No other takes over their steps or waits for them."""
        self._over: set[int] = set()
        """Invocations that have ended or paused."""
        self._waiting: set[int] = set()
        """Invocations that wait until their step can begin."""
        self._asking: list[tuple[int, int]] = []
        """Invocation and step of each question that waits for the user while other steps run."""
        self._restoring, self._is_restored = asyncio.Lock(), False
        self._news: asyncio.Future[None] | None = None
        self._known: tuple[object, PlanProgress] | None = None
        self._shown: Mapping[str, Any] = {}

    @property
    def progress(self) -> PlanProgress:
        """The current plan, with all records and the user's changes applied."""
        changes = self.inbox.changes
        key = (len(self.records), changes)
        if self._known is None or self._known[0] != key:
            plan = apply_records(self._base, self.records.values(), changes, self._members)
            self._known = key, plan
        return self._known[1]

    def shown(self) -> PlanProgress:
        """Return the current plan with the running steps marked `in_progress`."""
        steps = (
            step.model_copy(update={"status": "in_progress"}) if step.id in self.at_work else step
            for step in self.progress.steps
        )
        return self.progress.model_copy(update={"steps": tuple(steps)})

    def enter(self, own: int) -> None:
        """Make an invocation responsible for its step, also when it returns after a pause."""
        self._claims.setdefault(own, own)
        self._paused.discard(own)
        self._over.discard(own)

    def leave(self, own: int, *, is_paused: bool = False) -> None:
        """Record that an invocation has ended or paused, and wake those that wait for it."""
        self._over.add(own)
        if is_paused:
            self._paused.add(own)
        else:
            self._claims = {step: by for step, by in self._claims.items() if by != own}
        self.notify()

    def add(self, record: StepRecord) -> None:
        """Add a record, unless it was added before."""
        self.records.setdefault((record["by"], record["index"]), record)
        self.notify()

    def next_place(self) -> int:
        """Return the position of the next record in the order of all records."""
        return 1 + max((record["at"] for record in self.records.values()), default=0)

    def notify(self) -> None:
        """Wake all invocations that wait for a change."""
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def news(self) -> set[asyncio.Future[None]]:
        """Return futures of which one ends with the next change that may allow a step to begin.

        Who awaits anything between looking at the wave and waiting for news takes them before it looks:
        otherwise a change in between would wake nobody.
        """
        if self._news is None or self._news.done():
            self._news = asyncio.get_running_loop().create_future()
        return {self._news, self.inbox.changed()}

    async def wait_to_begin(self, own: int, news: set[asyncio.Future[None]]) -> None:
        """Wait for `news`, in an invocation whose step cannot begin yet."""
        if own not in self._waiting:
            self._waiting.add(own)
            self.notify()  # an open question stops waiting if no step can continue
        await asyncio.wait(news, return_when=asyncio.FIRST_COMPLETED)

    @contextmanager
    def asking(self, own: int, step_id: int) -> Generator[None]:
        """Mark a step as waiting for the user: it does not count towards the limit meanwhile."""
        self._asking.append((own, step_id))
        self.notify()
        try:
            yield
        finally:
            self._asking.remove((own, step_id))

    def has_others(self, own: int) -> bool:
        """Return whether another invocation works, or only waits for a free place or a resource."""
        resting = self._over | self._waiting | {own} | {one for one, _ in self._asking}
        return bool(self._sent - resting) or any(
            self._claims.get(step.id) in self._waiting
            and all(self.progress.is_over(one) for one in self.progress.given_to(step))
            for step in self.progress.open_work()
        )

    @property
    def can_go_on(self) -> bool:
        """Whether any step runs, or can begin, before a question is answered."""
        if self._sent - self._over - self._waiting - {own for own, _ in self._asking}:
            return True
        return any(
            self._claims.get(step.id) in self._waiting and self._can_begin(step)
            for step in self.progress.open_work()
        )

    async def show(self, step_id: int = 0, *, begins: bool = False) -> None:
        """Emit the plan if it has changed since the last time.

        With a `step_id`, always emit it, with whether an attempt of this step begins or ends.
        """
        await self.inbox.refuse(self.progress.refused)
        plan = as_shown(self.shown())
        if step_id or plan != self._shown:
            self._shown = plan
            await send_plan(plan, step_id, begins=begins)

    async def show_changes(self) -> None:
        """Emit the plan if the user has changed it since the wave began."""
        if self.inbox.has_new(self._base.changes):
            await self.show()

    def take_up(self, own: int, agent: Worker) -> TrackedStep | None:
        """Claim and return the step that the invocation works on next; None if none can begin now.

        That is its own step, or an unclaimed one if its own is over or was reassigned to another member.
        """
        work = [step for step in self.progress.open_work() if step.agent_name == agent]
        if not any(self._claims.get(step.id) == own for step in work):
            self._claims = {step: by for step, by in self._claims.items() if by != own}
        mine = self._claims.values()
        for step in work:
            may_claim = self._claims.get(step.id) == own or (own not in mine and step.id not in self._claims)
            if may_claim and self._can_begin(step):
                self._claims[step.id] = own
                self._waiting.discard(own)
                self.at_work.add(step.id)
                return step
        return None

    def is_worth_waiting(self, own: int) -> bool:
        """Return whether the step that the invocation has claimed may still begin in this wave."""
        step = next((one for one in self.progress.open_work() if self._claims.get(one.id) == own), None)
        if step is None or not self._is_allowed(step):
            return False
        needed = self.progress.given_to(step)
        return all(self.progress.is_over(one) or self._is_seen_to(one) for one in needed)

    def _is_seen_to(self, step: TrackedStep) -> bool:
        by = self._claims.get(step.id)
        return by is not None and by not in self._paused

    def closing_decision(self) -> StepRecord | None:
        """Return the record of a decision after which no further step begins in this wave."""
        for record in self.records.values():
            is_last = record["fields"].get("decision") in ("replan", "finish")
            if record["kind"] == "decision" and is_last and is_effective(self.progress, record):
                return record
        return None

    def _is_allowed(self, step: TrackedStep) -> bool:
        message = find_replanning(self.progress)
        if message is not None and message.reply is not None and step.id not in message.reply.steps:
            return False  # the user asked for the rest of the plan to be rewritten
        closing = self.closing_decision()
        # A step that was running at that decision, and was interrupted by a restart, is completed.
        return closing is None or (step.id in closing["at_work"] and step.status != "blocked")

    def _can_begin(self, step: TrackedStep) -> bool:
        progress = self.progress
        busy = self.at_work - {step_id for _, step_id in self._asking}
        if len(busy) >= self._rules.limit or not self._is_allowed(step):
            return False
        if not all(progress.is_over(one) for one in progress.given_to(step)):
            return False
        is_earlier = True
        for other in progress.steps:
            if other.id == step.id:
                is_earlier = False
            elif _share(other, step, self._rules.roles):
                is_due = is_earlier and self._is_seen_to(other) and not progress.is_over(other)
                if is_due or other.id in self.at_work:
                    return False
        return True

    async def restore(self) -> None:
        """Read the stored records of an earlier execution of this superstep; later calls do nothing."""
        async with self._restoring:
            if self._is_restored:
                return
            if is_resuming():
                self._restore(writes_of(await read_checkpoint(graph_namespace())))
            self._is_restored = True

    def _restore(self, writes: Sequence[tuple[str, str, Any]]) -> None:
        records, ended = read_records(writes)
        for record in records:
            self.add(record)
        for number in ended:
            self.leave(number)


class StepInvocation:
    """One invocation of a member's node in a wave, with its recorded calls in order."""

    def __init__(self, wave: StepWave, own: int, scope: RunScope) -> None:
        self._wave, self.own, self._scope = wave, own, scope
        self._calls = 0

    @property
    def records(self) -> list[StepRecord]:
        """The records of this invocation, in order."""
        mine = [record for record in self._wave.records.values() if record["by"] == self.own]
        return sorted(mine, key=lambda record: record["index"])

    async def replay(self) -> None:
        """Repeat the calls of an earlier execution; LangGraph returns their stored results."""
        for record in self.records:
            await self._call(record["name"], self._repeat(record))

    async def next_step(self, agent: Worker) -> TrackedStep | None:
        """Wait until a step can begin, and return it; None if there is none in this wave."""
        wave = self._wave
        while True:
            if current_meter().describe_near_limit() is not None:
                return None
            news = wave.news()
            if (step := wave.take_up(self.own, agent)) is not None:
                return step
            if not wave.is_worth_waiting(self.own):
                return None
            await wave.show()
            await wave.wait_to_begin(self.own, news)

    async def attempt(
        self, step: TrackedStep, work: Callable[[PlanProgress], Coroutine[Any, Any, Mapping[str, Any]]]
    ) -> TrackedStep | None:
        """Work on a step once; return it with its result, or None if the user has changed it meanwhile.

        `work` returns the fields of the step that change.
        """
        wave, edition = self._wave, step.edition

        def is_stopped() -> bool:
            now = wave.progress.step(step.id)
            return now is None or now.edition != edition

        async def body(index: int, name: str) -> StepRecord:
            fields = await run_unless_stopped(work(wave.shown()), wave.inbox, is_stopped)
            record = self._record(index, name, step)
            return record if fields is None else {**record, "kind": "try", "fields": dict(fields)}

        try:
            await wave.show(step.id, begins=True)
            await self._call(f"step_{step.id}_{edition}_{step.attempts + 1}", body, self._asking_scope(step))
        finally:
            wave.at_work.discard(step.id)
            wave.notify()
        await wave.show(step.id)
        return None if is_stopped() else wave.progress.step(step.id)

    async def decide(self, step: TrackedStep, ask: Callable[[PlanProgress], Awaitable[LeadDecision]]) -> bool:
        """Let the lead decide on a failed step; return False if the budget did not allow a decision.

        The decision is stored before it takes effect.
        """
        wave = self._wave

        async def body(index: int, name: str) -> StepRecord:
            # One at a time, so that each decision takes the earlier ones into account.
            async with wave.deciding:
                is_closing = wave.closing_decision() is not None
                try:
                    async with current_meter().enforce_time_limit():
                        decision = _LAST if is_closing else await ask(wave.shown())
                except BudgetExhausted:
                    return {**self._record(index, name, step), "kind": "undecided"}
                record: StepRecord = {
                    **self._record(index, name, step),
                    "kind": "decision",
                    "fields": decision.model_dump(mode="json"),
                    "at_work": sorted(wave.at_work),
                }
                await store_result_of_call(record)
                wave.add(record)
            if not is_closing:
                await report_decision(step, decision)
            return record

        record = await self._call(_LEAD, body)
        await wave.show()
        return record["kind"] == "decision"

    def _record(self, index: int, name: str, step: TrackedStep) -> StepRecord:
        return {
            "at": self._wave.next_place(),
            "by": self.own,
            "index": index,
            "name": name,
            "step": step.id,
            "edition": step.edition,
            "changes": len(self._wave.progress.changes),
            "kind": "stopped",
            "fields": {},
            "at_work": [],
        }

    def _repeat(self, record: StepRecord) -> Callable[[int, str], Awaitable[StepRecord]]:
        async def body(index: int, name: str) -> StepRecord:
            return record

        return body

    def _asking_scope(self, step: TrackedStep) -> RunScope:
        """Return the scope of a step; it can ask while others run if answers can arrive during the run."""
        scope = self._scope
        if not scope.inbox.is_reachable:
            return scope
        return replace(scope, asker=StepAsker(self._wave, self.own, step, scope.inbox))

    async def _call(
        self, name: str, body: Callable[[int, str], Awaitable[StepRecord]], scope: RunScope | None = None
    ) -> StepRecord:
        """Make one call and store its result; on a replay, return the stored result."""
        index, self._calls = self._calls, self._calls + 1
        scope = scope or self._scope
        metadata = {AGENT_MARK: _LEAD} if name == _LEAD else {}

        async def call() -> StepRecord:
            # The config of a call is that of its node as LangGraph made it, without the run's scope.
            with enter_scope(get_config(), scope, metadata=metadata):
                return await body(index, name)

        record = await task(name=name)(call)()
        self._wave.add(record)
        return record


@dataclass(frozen=True, slots=True)
class StepAsker:
    """Asks the user for one step of a wave (`Asker`)."""

    wave: StepWave
    own: int
    step: TrackedStep
    inbox: Inbox

    async def ask(self, payload: Mapping[str, Any], key: str) -> UserAnswer:
        """Return the answer, which may arrive while other steps run; else raise `GraphInterrupt`.

        An answer that was stored before a restart, or a pause, is returned without a question.
        """
        if (answer := self.inbox.answer_to(key)) is not None:
            self.inbox.count_answer()
            return answer
        try:
            return UserAnswer(interrupt(payload))
        except GraphInterrupt as pause:
            if not self.wave.has_others(self.own):
                raise
            # LangGraph's exception holds the interrupt, whose id is in that of the question.
            [asked] = cast("Sequence[Interrupt]", pause.args[0])
            question = OpenQuestion(key, self.inbox.make_id(asked.id), payload)
            if not await self._is_answered(question, payload):
                raise
        self.inbox.count_answer()
        await self._report(STEP_RESUMED, question)
        answer = self.inbox.answer_to(key)
        assert answer is not None
        return answer

    async def _is_answered(self, question: OpenQuestion, payload: Mapping[str, Any]) -> bool:
        """Show a question and wait while other steps run; return whether it was answered."""
        wave, inbox = self.wave, self.inbox
        inbox.show(question)
        try:
            with wave.asking(self.own, self.step.id):
                await self._report(STEP_INTERRUPT, question, value=payload)
                while not question.answered.done() and wave.can_go_on:
                    news = {*wave.news(), question.answered}
                    await asyncio.wait(news, return_when=asyncio.FIRST_COMPLETED)
            question.is_parked = not question.answered.done()
        finally:
            if not question.is_parked:
                inbox.withdraw(question.key)
        return question.answered.done()

    async def _report(self, name: str, question: OpenQuestion, **more: Any) -> None:
        step = {"step_id": self.step.id, "agent_name": self.step.agent_name}
        await adispatch_custom_event(name, {"interrupt_id": question.interrupt_id, **step, **more})
