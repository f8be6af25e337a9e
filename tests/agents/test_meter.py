"""What a run uses is counted where it happens; what goes beyond its budget is refused before it is sent."""

import asyncio
import inspect
import time
from dataclasses import dataclass

import pytest
from langchain_core.tools import tool

from maniple.agents import ROLES, StepFailed, StepLimits, Task, build_react_agent
from maniple.config import ModelsSettings
from maniple.errors import BudgetExhausted, ModelError
from maniple.llms import ask
from maniple.scope.budget import (
    Budget,
    Prices,
    UsageMeter,
    count_cached,
    find_price,
    iterate_limits,
    load_prices,
    usage_by_limit,
)
from maniple.store import RunUsage
from maniple.types import AGENT_MARK
from tests.agents.endpoints import kinds, model_at, run_events
from tests.openai_server import call, reply, serving

pytestmark = pytest.mark.anyio
LOOPING = {
    "coder": [call("look", place="x")],
    "other": [reply("one two three")],
    "reporter": [reply("# Report")],
}
TASK = Task(request="look", title="Look", description="look around")
QUESTION = [("user", "hello")]
CALLED: list[str] = []


@tool
async def look(place: str) -> str:
    """Look at a place."""
    CALLED.append(place)
    return "nothing"


def agent(model, role="coder"):
    return build_react_agent(
        ROLES[role], model, [look] if role == "coder" else [], limits=StepLimits(model_calls=30)
    )


async def streamed(model, config):
    return "".join([chunk.text async for chunk in model.astream(QUESTION, config=config)])


def given(one):
    return {"messages": one._messages(TASK)}


@pytest.mark.parametrize(("limit", "allowed", "tool_calls"), [("model_calls", 3, 3), ("tool_calls", 2, 2)])
async def test_a_call_beyond_the_limit_is_refused_before_it_is_sent(limit, allowed, tool_calls):
    CALLED.clear()
    meter = UsageMeter(Budget(**{limit: allowed}))
    with serving(LOOPING) as server:
        async with model_at(server) as model:
            coder = agent(model)
            events, error = await run_events(coder.graph, given(coder), {"callbacks": meter.callbacks})
    assert isinstance(error, BudgetExhausted), "neither the retries nor the words for tools swallow it"
    assert error.limit == limit
    assert server.stats["calls"] == meter.used.model_calls == 3
    assert len(CALLED) == meter.used.tool_calls == tool_calls
    assert len(kinds(events, "on_tool_start")) == tool_calls
    assert meter.exhausted
    assert limit.replace("_", " ") in meter.exhausted


async def test_tokens_and_cost_are_counted_from_the_endpoints_usage():
    meter = UsageMeter(Budget(tokens=1_000_000), {"m": Prices(input=2.0, output=10.0)})
    with serving(LOOPING) as server:
        async with model_at(server) as model:
            await ask(model, QUESTION, config={"callbacks": meter.callbacks})
            stats = server.stats
    used = meter.used
    assert (used.input_tokens, used.output_tokens) == (stats["prompt_tokens"], stats["completion_tokens"])
    assert used.cost == pytest.approx((used.input_tokens * 2 + used.output_tokens * 10) / 1e6)
    assert meter.exhausted is None


async def test_the_tokens_of_an_endpoint_that_reports_no_usage_are_estimated():
    meter = UsageMeter()
    with serving({"other": [reply("one two three four", usage=False)]}) as server:
        async with model_at(server) as model:
            await ask(model, QUESTION, config={"callbacks": meter.callbacks})
    assert meter.used.input_tokens > 0
    assert 3 <= meter.used.output_tokens <= 12


async def test_an_answer_that_broke_off_is_paid_and_one_that_never_came_is_not():
    broken, never = UsageMeter(), UsageMeter()
    script = {"other": [reply("one two three four", cut_after=2)]}
    with serving(script) as server:
        async with model_at(server, capabilities={"unopened_thoughts": False}) as model:
            with pytest.raises(ModelError):
                await streamed(model, {"callbacks": broken.callbacks})
            server.reset({"other": [{"status": 400}]})
            with pytest.raises(ModelError):
                await model.ainvoke(QUESTION, config={"callbacks": never.callbacks})
    assert broken.used.input_tokens > 0
    assert never.used.input_tokens == 0
    assert broken.used.model_calls == never.used.model_calls == 0, "only answered calls are counted"


@pytest.mark.parametrize("limit", [{"tokens": 400}, {"cost": 0.0004}])
async def test_a_call_whose_prompt_alone_does_not_fit_is_not_sent(limit):
    meter = UsageMeter(Budget(**limit), {"m": Prices(input=1.0)})
    with serving(LOOPING) as server:
        async with model_at(server) as model:
            with pytest.raises(BudgetExhausted, match="next call needs about"):
                await ask(model, [("user", "word " * 2_000)], config={"callbacks": meter.callbacks})
            assert server.stats["calls"] == 0


@pytest.mark.parametrize("limit", [{"model_calls": 5}, {"tokens": 60}])
async def test_parallel_calls_go_beyond_a_limit_by_no_more_than_what_is_under_way(limit):
    meter = UsageMeter(Budget(**limit))
    with serving({"other": [reply("a b", delay_seconds=0.01)]}) as server:
        async with model_at(server) as model:
            asked = [ask(model, QUESTION, config={"callbacks": meter.callbacks}) for _ in range(20)]
            outcomes = await asyncio.gather(*asked, return_exceptions=True)
    refused = [one for one in outcomes if isinstance(one, BudgetExhausted)]
    assert len(refused) == 20 - server.stats["calls"]
    if "model_calls" in limit:
        assert server.stats["calls"] == 5
    else:
        assert server.stats["prompt_tokens"] <= 60 + 10, "the prompts of calls under way are reserved"


async def test_the_report_has_one_call_beyond_the_limit_and_no_other_has():
    meter = UsageMeter(Budget(model_calls=1), used=RunUsage(model_calls=1))
    with serving(LOOPING) as server:
        async with model_at(server) as model:
            for role, summary, sent in [("coder", False, 0), ("reporter", True, 0), ("reporter", False, 1)]:
                metadata = {AGENT_MARK: role, **({"lc_source": "summarization"} if summary else {})}
                config = {"callbacks": meter.callbacks, "metadata": metadata}
                if sent:
                    await ask(model, QUESTION, config=config)
                else:
                    with pytest.raises(BudgetExhausted):
                        await ask(model, QUESTION, config=config)
                assert server.stats["calls"] == sent
            with pytest.raises(BudgetExhausted):
                await ask(model, QUESTION, config=config)
    assert meter.exhausted


async def test_a_report_that_broke_off_may_be_requested_again():
    meter = UsageMeter(Budget(model_calls=1), used=RunUsage(model_calls=1))
    script = {"other": [{"chunks": ["# Re", "port"], "cut_after": 1, "times": 1}, reply("# Report")]}
    with serving(script) as server:
        async with model_at(server) as model:
            config = {"callbacks": meter.callbacks, "metadata": {AGENT_MARK: "reporter"}}
            with pytest.raises(ModelError):
                await streamed(model, config)
            assert await streamed(model, config) == "# Report"
            with pytest.raises(BudgetExhausted):
                await streamed(model, config)


async def test_a_meter_goes_on_where_it_was_before_a_restart():
    now = [100.0]
    meter = UsageMeter(
        Budget(seconds=10, tool_calls=10), used=RunUsage(2, 3, 40, 5, 6.0, 0.5), clock=lambda: now[0]
    )
    now[0] += 1_000
    assert meter.used.seconds == 6.0, "waiting for a place to work in is no work"
    meter.start()
    now[0] += 1.5
    meter.start()
    assert meter.used == RunUsage(2, 3, 40, 5, 7.5, 0.5)
    assert meter.describe_near_limit() is None
    now[0] += 0.5
    assert "seconds" in (meter.describe_near_limit() or "")
    meter.check(tool_calls=1)
    now[0] += 2
    with pytest.raises(BudgetExhausted, match="budget of 10 seconds"):
        meter.check(tool_calls=1)


async def test_four_fifths_of_any_limit_are_near_it():
    limits = {"tokens": 100, "model_calls": 10, "tool_calls": 10, "cost": 1.0}
    almost = RunUsage(7, 7, 39, 40, 0, 0.79)
    assert UsageMeter(Budget(**limits), used=almost).describe_near_limit() is None
    for field, value in [("model_calls", 8), ("tool_calls", 8), ("output_tokens", 41), ("cost", 0.8)]:
        used = RunUsage(**{**{name: getattr(almost, name) for name in almost.__slots__}, field: value})
        assert UsageMeter(Budget(**limits), used=used).describe_near_limit(), field


@dataclass
class Day:
    """A day of a key that others use, too: `used` is what they have."""

    budget: Budget
    used: RunUsage

    def levels(self, **coming):
        return iterate_limits(self.budget, usage_by_limit(self.used), coming, {}, is_daily=True)


@pytest.mark.parametrize(
    ("limits", "used", "words"),
    [
        (
            {"model_calls": 5},
            RunUsage(model_calls=5),
            "The key's daily limit of 5 model calls is used up (5 used).",
        ),
        ({"cost": 0.5}, RunUsage(cost=0.625), "The key's daily limit of 0.5 (cost) is used up (0.625 used)."),
        (
            {"tokens": 100},
            RunUsage(input_tokens=99),
            "daily limit of 100 tokens is used up (99 used, and the next",
        ),
    ],
)
async def test_a_limit_that_is_shared_binds_beside_the_run_s_own_and_is_named(limits, used, words):
    meter = UsageMeter(Budget(**dict.fromkeys(limits, 1_000)), shared=Day(Budget(**limits), used))
    with serving(LOOPING) as server:
        async with model_at(server) as model:
            with pytest.raises(BudgetExhausted) as caught:
                await ask(model, QUESTION, config={"callbacks": meter.callbacks})
        assert server.stats["calls"] == 0
    assert words in str(caught.value)
    assert caught.value.limit in limits
    assert "daily limit" in (meter.exhausted or "")


async def test_tool_calls_are_allowed_by_what_is_shared_too():
    meter = UsageMeter(shared=Day(Budget(tool_calls=3), RunUsage(tool_calls=2)))
    assert meter.allows(tool_calls=1)
    assert not meter.allows(tool_calls=2)
    with pytest.raises(BudgetExhausted, match="limit of 3 tool calls"):
        meter.check(tool_calls=2)


async def test_near_a_shared_limit_is_four_fifths_of_what_was_left_when_the_run_began():
    day = Day(Budget(model_calls=100), RunUsage(model_calls=90))
    meter = UsageMeter(Budget(model_calls=50), shared=day)
    meter.start()
    assert meter.describe_near_limit() is None, "a run that was taken may use the rest"
    day.used = RunUsage(model_calls=97)
    assert meter.describe_near_limit() is None
    day.used = RunUsage(model_calls=98)
    assert meter.describe_near_limit() == "98 of 100 (model calls) of the key's daily limit are used"


async def test_what_takes_longer_than_the_seconds_left_of_the_day_is_cut():
    meter = UsageMeter(Budget(seconds=60), shared=Day(Budget(seconds=100), RunUsage(seconds=99.95)))
    meter.start()
    with pytest.raises(BudgetExhausted, match="daily limit of 100 seconds"):
        async with meter.enforce_time_limit():
            await asyncio.Event().wait()


async def test_what_takes_longer_than_the_run_s_seconds_is_cut():
    meter = UsageMeter(Budget(seconds=0.05))
    meter.start()
    with pytest.raises(BudgetExhausted) as caught:
        async with meter.enforce_time_limit():
            await asyncio.Event().wait()
    assert caught.value.limit == "seconds"
    assert meter.exhausted
    async with meter.enforce_time_limit(reporting=True):
        await asyncio.sleep(0)


async def test_a_report_has_a_share_of_the_run_s_seconds_and_no_more():
    meter = UsageMeter(Budget(seconds=0.2))
    meter.start()
    for reporting in (False, True):
        with pytest.raises(BudgetExhausted):
            async with meter.enforce_time_limit(reporting=reporting):
                await asyncio.Event().wait()
    assert meter.used.seconds < 1, "a report that never ends does not take its minute"


async def test_the_time_of_what_is_at_work_stands_while_the_meter_is_stopped():
    meter = UsageMeter(Budget(seconds=0.1))
    meter.start()
    with pytest.raises(BudgetExhausted):
        async with meter.enforce_time_limit():
            meter.stop()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):  # longer than the budget
                    await asyncio.Event().wait()
            meter.start()
            await asyncio.Event().wait()
    assert meter.used.seconds < 0.3


async def test_other_timeouts_and_cancellations_pass():
    meter = UsageMeter(Budget(seconds=60))
    with pytest.raises(TimeoutError):
        async with meter.enforce_time_limit():
            raise TimeoutError
    begun = asyncio.Event()

    async def work():
        async with meter.enforce_time_limit():
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert meter.exhausted is None


async def test_a_step_failing_in_its_own_bounds_is_no_matter_of_the_budget():
    meter = UsageMeter(Budget(model_calls=100))
    with serving(LOOPING) as server:
        async with model_at(server) as model:
            coder = build_react_agent(ROLES["coder"], model, [look], limits=StepLimits(model_calls=2))
            with pytest.raises(StepFailed, match="limit of 2 model calls"):
                await coder.work(TASK)
        assert server.stats["calls"] == 2
    assert meter.exhausted is None


async def test_a_refusal_is_no_warning_in_the_log(caplog):
    meter = UsageMeter(Budget(model_calls=1), used=RunUsage(model_calls=1))
    with serving(LOOPING) as server:
        async with model_at(server) as model:
            with pytest.raises(BudgetExhausted):
                await ask(model, QUESTION, config={"callbacks": meter.callbacks})
    assert caplog.records == []


def test_cached_tokens_have_their_own_price_or_that_of_the_others():
    assert Prices(2.0, 10.0, 0.5).of(1_000_000, 100_000, 600_000) == pytest.approx(0.8 + 0.3 + 1.0)
    assert Prices(2.0).of(1_000_000, 0, 600_000) == 2.0
    assert Prices(2.0, 0.0, 0.0).of(1_000_000, 0, 1_000_000) == 0.0


@pytest.mark.parametrize(
    ("details", "cached"),
    [({"cache_read": 3}, 3), ({"priority_cache_read": 3}, 3), ({"cache_read": 30}, 10), ({"audio": 3}, 0)],
)
def test_no_more_tokens_are_cached_than_were_read(details, cached):
    usage = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}
    assert count_cached({**usage, "input_token_details": details}) == cached
    assert count_cached(usage) == 0


def test_prices_come_from_the_settings_with_those_of_the_fallbacks():
    spare = {"model": "spare", "base_url": "http://x/v1", "price_output": 3}
    basic = {
        "model": "m",
        "base_url": "http://x/v1",
        "price_input": 1,
        "price_cached": 0.5,
        "fallbacks": [spare],
    }
    free = {"model": "free", "base_url": "http://x/v1"}
    settings = ModelsSettings.model_validate({"basic": basic, "vision": free})
    assert load_prices(settings) == {"m": Prices(1.0, 0.0, 0.5), "spare": Prices(0.0, 3.0)}


@pytest.mark.parametrize("name", ["m-4o", "m-4o-2024-08-06", "m-4o-20240806"])
def test_a_model_has_its_price_also_where_its_answer_calls_it_by_a_date(name):
    assert find_price({"m-4o": Prices(1.0)}, name) == Prices(1.0)


@pytest.mark.parametrize("name", ["", "m-4o-mini", "m-4o-mini-2024-08-06", "m-4o-2024-08-06-b"])
def test_a_model_does_not_have_the_price_of_another_one(name):
    assert find_price({"m-4o": Prices(1.0)}, name) is None


@pytest.mark.parametrize("wrong_by", [-86_400, 86_400])
async def test_a_changed_wall_clock_does_not_change_the_seconds_of_a_run(monkeypatch, wrong_by):
    assert inspect.signature(UsageMeter).parameters["clock"].default is time.monotonic
    clock = time.time
    meter = UsageMeter(Budget(seconds=30))
    meter.start()
    monkeypatch.setattr(time, "time", lambda: clock() + wrong_by)
    async with meter.enforce_time_limit():
        with serving(LOOPING) as server:
            async with model_at(server) as model:
                assert await streamed(model, {"callbacks": meter.callbacks}) == "one two three"
    assert 0 <= meter.used.seconds < 20
    assert meter.describe_near_limit() is None
    assert meter.exhausted is None
