"""What can be asked about a run at any time, also while it works: its plan, its costs, its tool calls."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from maniple.cli.render.run_text import describe_call, failure_texts, plan_lines
from maniple.cli.text import (
    arguments_line,
    clean,
    clean_event,
    duration,
    failure_mark,
    one_line,
    reason_line,
    table_lines,
)
from maniple.events import (
    AgentStarted,
    PlanChanged,
    RunStarted,
    RunStatusChanged,
    ToolCalled,
    ToolReturned,
    UsageReported,
    event_of,
    load_run_view,
)
from maniple.events.run_view import ModelTotals, UsageTotals
from maniple.scope.budget import Prices, find_price
from maniple.store import RunRecord, Store, read_event_pages
from maniple.text import counted

_LISTED_CALLS = 40
"""The newest calls that `/show` lists without a number."""
_CALL_CHARACTERS = 70
_NO_RUN = "This conversation has no run yet."
_COST_COLUMNS = ("", "model", "calls", "read", "cached", "written", "cost")
_PRICE_HINT = "Prices are models.basic.price_input and price_output in conf.yaml, for a million tokens."


@dataclass(frozen=True, slots=True)
class RunInspector:
    """Describes the newest run of a thread from its stored events. `prices` are those of models, by name."""

    store: Store
    prices: Mapping[str, Prices] = field(default_factory=dict[str, Prices])

    async def plan(self, thread_id: str) -> str:
        """Return the plan of the newest run with the state of each step."""
        run = await self._newest(thread_id)
        if run is None:
            return _NO_RUN
        view = await load_run_view(self.store.events, run.run_id, [RunStarted, PlanChanged, RunStatusChanged])
        plan = view.plan_draft or view.plan
        if plan is None or plan.is_request:
            return "The last run has no plan: one agent answered alone."
        return "\n".join(_plan_text(plan, is_draft=view.plan_draft is not None))

    async def cost(self, thread_id: str) -> str:
        """Return a table of the tokens and the cost: by member for the newest run, and for the thread."""
        runs = [run async for run in self._runs(thread_id)]
        if not runs:
            return _NO_RUN
        newest = await self._usage(runs[0].run_id)
        rows = [self._cost_row(one.agent_name, [one]) for one in newest.by_model.values()]
        rows.append(self._cost_row("last run", [*newest.by_model.values()]))
        if len(runs) > 1:
            totals = [*newest.by_model.values()]
            for run in runs[1:]:
                totals += (await self._usage(run.run_id)).by_model.values()
            rows.append(self._cost_row(f"all {len(runs)} runs", totals))
        else:
            totals = [*newest.by_model.values()]
        unpriced = sorted({clean(one.model) for one in totals if find_price(self.prices, one.model) is None})
        lines = [*table_lines([_COST_COLUMNS, *rows], right_from=2)]
        if unpriced:
            lines.append(f"No price is set for {', '.join(unpriced)}. {_PRICE_HINT}")
        return "\n".join(lines)

    async def calls(self, thread_id: str, rest: str = "") -> str:
        """Return a line for each tool call of the newest run, or all of the call with the number `rest`."""
        run = await self._newest(thread_id)
        if run is None:
            return _NO_RUN
        calls = await self._calls(run.run_id)
        if not calls:
            return "The last run has called no tool yet."
        if not rest:
            return "\n".join(_listed(calls))
        if not rest.isdecimal() or not 1 <= int(rest) <= len(calls):
            return f"There is no call {rest}. Give a number from 1 to {len(calls)}; /show lists the calls."
        return "\n".join(calls[int(rest) - 1].full_lines())

    async def _newest(self, thread_id: str) -> RunRecord | None:
        return next(iter(await self.store.runs.list_by_thread(thread_id, limit=1)), None)

    async def _runs(self, thread_id: str) -> AsyncIterator[RunRecord]:
        before: float | None = None
        while page := await self.store.runs.list_by_thread(thread_id, before=before):
            for run in page:
                yield run
            before = page[-1].created_at

    async def _usage(self, run_id: str) -> UsageTotals:
        return (await load_run_view(self.store.events, run_id, [UsageReported])).usage

    def _cost_row(self, name: str, totals: Sequence[ModelTotals]) -> tuple[str, ...]:
        """Return a row of the table; without a price for one of the models, the cost is a lower bound."""
        prices = [find_price(self.prices, one.model) for one in totals]
        cost = sum(
            price.of(one.input_tokens, one.output_tokens, one.cached_tokens)
            for one, price in zip(totals, prices, strict=True)
            if price is not None
        )
        known = [price for price in prices if price is not None]
        bound = "≥ " if len(known) < len(prices) else ""
        models = {clean(one.model) for one in totals}
        return (
            clean(name).replace("_", " "),
            one_line(models.pop(), 40) if len(models) == 1 else "",
            f"{sum(one.calls for one in totals):,}",
            f"{sum(one.input_tokens for one in totals):,}",
            f"{sum(one.cached_tokens for one in totals):,}",
            f"{sum(one.output_tokens for one in totals):,}",
            f"{bound}{cost:.4f}" if known else "–",
        )

    async def _calls(self, run_id: str) -> list["_Call"]:
        """Return the tool calls of a run in their order; their numbers begin at 1."""
        calls, by_id, agents = list[_Call](), dict[str, _Call](), dict[str, str]()
        names = {AgentStarted.type, ToolCalled.type, ToolReturned.type}
        async for page in read_event_pages(self.store.events, run_id, types=names):
            for record in page:
                event = clean_event(event_of(record))
                match event:
                    case AgentStarted():
                        agents[event.agent_id] = event.agent_name
                    case ToolCalled():
                        number = len(calls) + 1
                        call = _Call(number, event, agents.get(record.turn_id, ""), record.step_id)
                        by_id[event.tool_call_id] = call
                        calls.append(call)
                    case ToolReturned() if event.tool_call_id in by_id:
                        by_id[event.tool_call_id].returned = event
                    case _:
                        pass
        return calls


@dataclass(slots=True)
class _Call:
    """A tool call with its number in the run and who made it."""

    number: int
    called: ToolCalled
    agent_name: str
    step_id: int | None
    returned: ToolReturned | None = None

    @property
    def state(self) -> str:
        """How long the call took and how it failed; `running` while it has no result."""
        if self.returned is None:
            return "running"
        times = self.called.at, self.returned.at
        took = duration(times[1] - times[0]) if all(times) and times[1] >= times[0] else "done"
        return " ".join(filter(None, (took, failure_mark(self.returned.tool_result))))

    def full_lines(self) -> Iterator[str]:
        """Yield who called what with every argument, and the whole result."""
        step = f", step {self.step_id}" if self.step_id is not None else ""
        agent = f"{self.agent_name}{step}, " if self.agent_name else ""
        yield f"{self.number}  {self.called.tool_name}  ({agent}{self.state})"
        yield from describe_call(self.called.tool_input)
        if self.returned is not None:
            yield "Result:"
            yield from (f"  {line}" for line in (self.returned.tool_result or "(no output)").split("\n"))


def _listed(calls: Sequence[_Call]) -> Iterator[str]:
    shown = calls[-_LISTED_CALLS:]
    rows = [
        (
            str(one.number),
            one.called.tool_name,
            one.agent_name.replace("_", " "),
            one.state,
            arguments_line(one.called.tool_input, _CALL_CHARACTERS),
        )
        for one in shown
    ]
    if len(calls) > len(shown):
        yield f"{counted(len(calls) - len(shown), 'earlier call')} not listed; /show NUMBER shows them, too."
    yield from table_lines(rows)
    yield "/show NUMBER prints one in full."


def _plan_text(plan: PlanChanged, *, is_draft: bool) -> Iterator[str]:
    steps = plan.worked_steps
    done = sum(step.status == "completed" for step in steps)
    state = "is being written" if is_draft else f"{done} of {counted(len(steps), 'step')} done"
    yield f"Plan: {one_line(clean(plan.title))} ({state})"
    for step, line in zip(steps, plan_lines(steps), strict=True):
        yield f"  {line.plain.rstrip()}"
        for text in failure_texts(step, verbose=False):
            yield f"       {reason_line(clean(text))}"


async def _show_plan(inspector: RunInspector, thread_id: str, rest: str) -> str:
    return await inspector.plan(thread_id)


async def _show_cost(inspector: RunInspector, thread_id: str, rest: str) -> str:
    return await inspector.cost(thread_id)


async def _show_call(inspector: RunInspector, thread_id: str, rest: str) -> str:
    return await inspector.calls(thread_id, rest)


Inspection = Callable[[RunInspector, str, str], Awaitable[str]]
"""Takes the inspector, the thread's id and the rest of the line; returns what to print."""
INSPECTIONS: Mapping[str, Inspection] = {"/plan": _show_plan, "/cost": _show_cost, "/show": _show_call}
"""The commands that only read, and therefore work while a run is shown."""


def find_inspection(line: str) -> tuple[Inspection, str] | None:
    """Return the command of a line that only reads, and the rest of the line; None for other lines."""
    name, _, rest = line.strip().partition(" ")
    found = INSPECTIONS.get(name.casefold())
    return (found, rest.strip()) if found is not None else None
