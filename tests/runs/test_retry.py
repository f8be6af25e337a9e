"""A run that failed, or whose answer has gaps, is retried: only what was not done is done."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool

from maniple.agents.offers import Offer
from maniple.graph import TeamRules
from maniple.graph.plan import Plan, PlanProgress
from maniple.graph.plan_edits import apply_changes
from maniple.report_files.stored_reports import read_answer
from maniple.runs import EngineConfig, InProcessEngine, NotFound, NothingToRetry, RunRequest, open_engine
from maniple.scope.budget import Budget
from maniple.scope.inputs import PlanChange
from maniple.service.views import read_gaps
from maniple.store import Store, open_store
from maniple.types import WORKERS
from tests.openai_server import SIMPLE, call, reply
from tests.team import TOOLS, Scripted, checked, data, plan, scripted_team, step

pytestmark = pytest.mark.anyio
RULES = TeamRules(step_retries=0, max_plan_adaptations=0)
NO_DATA = reply("STEP FAILED: no data")
REPORTS = (reply("# Report"),)
STEPS = plan(step("coder"), step("researcher"), step("reporter"))


def script(*researcher, reporter=REPORTS):
    return {
        "coordinator": [call("handoff_to_planner")],
        "planner": [reply(json.dumps(STEPS))],
        "coder": [reply("It is 4.")],
        "researcher": list(researcher),
        "reporter": list(reporter),
    }


class Opened:
    def __init__(self, it: Scripted, store: Store, engine: InProcessEngine) -> None:
        self.it, self.store, self.engine = it, store, engine

    async def ask(self, **request):
        return (await self.engine.submit(RunRequest([HumanMessage("1+3=?")], **request))).run

    async def frames(self, run_id, after=0):
        from maniple.events import read_event

        pages = [page async for page in self.engine.events(run_id, after)]
        return checked([read_event(one.type, one.data) for page in pages for one in page])

    async def retried(self, run_id):
        accepted = await self.engine.retry(run_id)
        return await self.frames(run_id, accepted.after)

    def asked(self):
        return [len(self.it.prompts(role)) for role in ("planner", "coder", "researcher", "reporter")]


@pytest.fixture
def opening(tmp_path):
    @asynccontextmanager
    async def opened(script, offer=TOOLS):
        async with (
            open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
            scripted_team(script, checkpointer=store.checkpointer, rules=RULES, toolbox=offer) as it,
            open_engine(it.team, store, kind="server", config=EngineConfig(drain_seconds=0.1)) as engine,
        ):
            yield Opened(it, store, engine)

    return opened


async def test_a_gap_is_filled_and_what_was_done_is_not_done_again(opening):
    reports = reply("# Without it"), reply("# With it")
    async with opening(script(NO_DATA, reply("Found."), reporter=reports)) as here:
        run = await here.ask()
        [first] = data(await here.frames(run.run_id), "run_status")
        assert first["status"] == "completed"
        assert [gap["step"] for gap in first["gaps"]] == ["researcher's step"]
        frames = await here.retried(run.run_id)
        assert data(frames, "run_status") == [{"status": "completed"}]
        assert frames[-1][1]["messages"][-1]["content"] == "# With it"
        assert here.asked() == [1, 1, 2, 2]
        assert "It is 4." in here.it.prompts("reporter")[-1]
        with pytest.raises(NothingToRetry):
            await here.engine.retry(run.run_id)


AWAY = {"status": 500, "error": "the scripted outage"}


async def test_a_failed_run_goes_on_at_the_step_that_failed(opening):
    away = {**script(AWAY, reporter=[AWAY]), "coder": [AWAY]}
    async with opening(away) as here:
        run = await here.ask()
        assert data(await here.frames(run.run_id), "run_status") == [{"status": "failed"}]
        failed = await here.engine.status(run.run_id)
        assert (failed.status, failed.error_code) == ("failed", "model_overloaded")
        assert await read_answer(here.store, failed) is None
        here.it.server.reset(script(reply("Found.")))
        frames = await here.retried(run.run_id)
        ended = await here.engine.status(run.run_id)
        assert data(frames, "run_status") == [{"status": "completed"}]
        assert (ended.status, ended.error_code, ended.error) == ("completed", None, None)
        assert here.asked() == [0, 1, 1, 1]


async def test_an_outage_with_one_step_done_fails_the_run_whose_results_are_delivered(opening):
    async with opening({**script(AWAY, reporter=[AWAY]), "supervisor": [AWAY]}) as here:
        run = await here.ask()
        frames = await here.frames(run.run_id)
        [ended] = data(frames, "run_status")
        assert ended["status"] == "failed"
        assert [gap["step"] for gap in ended["gaps"]] == ["researcher's step", "reporter's step"]
        assert "It is 4." in frames[-1][1]["messages"][-1]["content"]
        failed = await here.engine.status(run.run_id)
        assert (failed.status, failed.error_code) == ("failed", "model_overloaded")
        assert "It is 4." in (await read_answer(here.store, failed) or "")
        [error] = data(frames, "error")
        assert error["retryable"]
        here.it.server.reset(script(reply("Found.")))
        frames = await here.retried(run.run_id)
        assert data(frames, "run_status") == [{"status": "completed"}]
        assert frames[-1][1]["messages"][-1]["content"] == "# Report"
        assert here.asked() == [0, 0, 1, 1]


async def test_a_run_that_failed_at_its_plan_is_planned_by_the_retry(opening):
    async with opening({**script(reply("Found.")), "planner": [AWAY]}) as here:
        run = await here.ask()
        assert data(await here.frames(run.run_id), "run_status") == [{"status": "failed"}]
        here.it.server.reset(script(reply("Found.")))
        assert data(await here.retried(run.run_id), "run_status") == [{"status": "completed"}]
        assert here.asked() == [1, 1, 1, 1]


async def test_a_step_whose_model_did_not_answer_is_done_by_the_retry(opening):
    async with opening(script(AWAY)) as here:
        run = await here.ask()
        [first] = data(await here.frames(run.run_id), "run_status")
        assert first["status"] == "completed"
        assert [gap["step"] for gap in first["gaps"]] == ["researcher's step"]
        here.it.server.reset(script(reply("Found.")))
        assert data(await here.retried(run.run_id), "run_status") == [{"status": "completed"}]
        assert here.asked() == [0, 0, 1, 1]


async def test_a_retry_that_fails_again_can_be_retried(opening):
    async with opening(script(NO_DATA, NO_DATA, reply("Found."))) as here:
        run = await here.ask()
        await here.frames(run.run_id)
        [again] = data(await here.retried(run.run_id), "run_status")
        assert [gap["step"] for gap in again["gaps"]] == ["researcher's step"]
        assert data(await here.retried(run.run_id), "run_status") == [{"status": "completed"}]
        assert here.asked()[1] == 1


async def cancel_at_work(here, run):
    """Retry a run, and cancel it while a model works on the first step that is tried again."""
    accepted = await here.engine.retry(run.run_id)
    await asyncio.to_thread(here.it.server.wait_for, lambda stats: stats["active"] == 1)
    await here.engine.cancel(run.run_id)
    return await here.frames(run.run_id, accepted.after)


async def test_a_cancelled_retry_names_what_is_left_and_can_be_retried(opening):
    hang = {"hang": True}
    async with opening(
        script(NO_DATA, hang, hang, reply("Found."), reporter=[reply("# Without it")])
    ) as here:
        run = await here.ask()
        await here.frames(run.run_id)
        for _ in range(2):
            [ended] = data(await cancel_at_work(here, run), "run_status")
            assert ended["status"] == "cancelled"
            assert [gap["step"] for gap in ended["gaps"]] == ["researcher's step", "reporter's step"]
        cancelled = await here.engine.status(run.run_id)
        assert [gap.step for gap in await read_gaps(here.store, cancelled)] == [
            "researcher's step",
            "reporter's step",
        ]
        assert (await read_answer(here.store, cancelled) or "").startswith("# Without it\n")
        assert data(await here.retried(run.run_id), "run_status") == [{"status": "completed"}]
        assert here.asked()[1] == 1


async def test_a_retry_that_is_cancelled_before_it_begins_can_be_retried(opening):
    async with opening(script(NO_DATA, reply("Found."))) as here:
        run = await here.ask()
        await here.frames(run.run_id)
        accepted = await here.engine.retry(run.run_id)
        await here.engine.cancel(run.run_id)
        [ended] = data(await here.frames(run.run_id, accepted.after), "run_status")
        assert ended["gaps"][0]["step"] == "researcher's step"
        assert data(await here.retried(run.run_id), "run_status") == [{"status": "completed"}]


async def test_a_cancelled_run_goes_on_where_it_stopped(opening):
    coder = [{"hang": True, "times": 1}, reply("It is 4.")]
    async with opening({**script(reply("Found.")), "coder": coder}) as here:
        run = await here.ask()
        await asyncio.to_thread(here.it.server.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
        await here.engine.cancel(run.run_id)
        [ended] = data(await here.frames(run.run_id), "run_status")
        assert ended["gaps"][0]["step"] == "coder's step"
        assert data(await here.retried(run.run_id), "run_status") == [{"status": "completed"}]
        assert len(here.it.prompts("planner")) == 1
        assert len(here.it.prompts("researcher")) == 1
        with pytest.raises(NothingToRetry):
            await here.engine.retry(run.run_id)


@pytest.mark.parametrize("role", ["coordinator", "planner"])
async def test_a_run_that_was_cancelled_before_it_had_a_plan_begins_again(opening, role):
    told = script(reply("Found."))
    async with opening({**told, role: [{"hang": True, "times": 1}, *told[role]]}) as here:
        run = await here.ask()
        await asyncio.to_thread(here.it.server.wait_for, lambda stats: stats["by_role"].get(role) == 1)
        await here.engine.cancel(run.run_id)
        assert data(await here.retried(run.run_id), "run_status") == [{"status": "completed"}]


async def test_a_retry_has_the_whole_budget_again(opening):
    async with opening(script(NO_DATA, reply("Found."))) as here:
        run = await here.ask(budget=Budget(model_calls=5))
        [first] = data(await here.frames(run.run_id), "run_status")
        assert first["gaps"]
        assert data(await here.retried(run.run_id), "run_status") == [{"status": "completed"}]


async def test_a_program_that_stops_during_the_retry_continues_it(opening):
    async with opening(script(NO_DATA, {"hang": True})) as here:
        run = await here.ask()
        await here.frames(run.run_id)
        accepted = await here.engine.retry(run.run_id)
        await asyncio.to_thread(here.it.server.wait_for, lambda stats: stats["active"] == 1)
    async with opening(script(reply("Found."))) as here:
        frames = await here.frames(run.run_id, accepted.after)
        assert data(frames, "run_status")[-1] == {"status": "completed"}
        assert here.asked() == [0, 0, 1, 1]


async def test_only_the_owner_retries_and_only_what_failed_or_has_gaps(opening):
    async with opening(SIMPLE) as here:
        run = await here.ask()
        await here.frames(run.run_id)
        with pytest.raises(NothingToRetry):
            await here.engine.retry(run.run_id)
        with pytest.raises(NotFound):
            await here.engine.retry(run.run_id, "bob")


async def test_a_conversation_that_has_gone_on_is_not_turned_back(opening):
    async with opening(script(NO_DATA)) as here:
        run = await here.ask()
        await here.frames(run.run_id)
        later = await here.ask(thread_id=run.thread_id)
        await here.frames(later.run_id)
        with pytest.raises(NothingToRetry):
            await here.engine.retry(run.run_id)


async def test_a_program_that_stops_before_the_retry_begins_does_it_later(opening):
    async with opening(script(NO_DATA)) as here:
        run = await here.ask()
        await here.frames(run.run_id)
        accepted = await here.engine.retry(run.run_id)  # the program stops before anything came of it
    async with opening(script(reply("Found."))) as here:
        frames = await here.frames(run.run_id, accepted.after)
        assert data(frames, "run_status") == [{"status": "completed"}]
        assert here.asked()[:2] == [0, 0]


class Shop:
    """A tool whose calls must not be made twice."""

    def __init__(self) -> None:
        self.orders = list[str]()

    def offer(self) -> Offer:
        async def order(item: str) -> str:
            """Order an item."""
            self.orders.append(item)
            return f"Order {len(self.orders)}: {item}."

        return Offer({"researcher": [StructuredTool.from_function(coroutine=order)]})


ORDERS = [call("order", item="tea"), call("order", item="cups")]


@pytest.mark.parametrize("made", [1, 2])
async def test_a_step_whose_last_answer_was_missing_continues_from_its_calls(opening, made):
    shop = Shop()
    async with opening(script(*ORDERS[:made], AWAY), shop.offer()) as here:
        run = await here.ask()
        [first] = data(await here.frames(run.run_id), "run_status")
        assert [gap["step"] for gap in first["gaps"]] == ["researcher's step"]
        here.it.server.reset(script(*ORDERS[made:], reply("Ordered.")))
        assert data(await here.retried(run.run_id), "run_status") == [{"status": "completed"}]
        [prompt, *_] = here.it.prompts("researcher")
        assert "Order 1: tea." in prompt, "the model reads the results of the first try"
        assert "An earlier try failed" not in prompt
    assert shop.orders == ["tea", "cups"][: max(made, 2)]


async def test_a_step_that_fails_in_several_tries_keeps_the_calls_of_all(opening):
    shop = Shop()
    async with opening(script(ORDERS[0], AWAY), shop.offer()) as here:
        run = await here.ask()
        await here.frames(run.run_id)
        here.it.server.reset(script(ORDERS[1], AWAY))
        await here.retried(run.run_id)
        here.it.server.reset(script(AWAY))
        await here.retried(run.run_id)
        here.it.server.reset(script(reply("Ordered.")))
        assert data(await here.retried(run.run_id), "run_status") == [{"status": "completed"}]
        prompt = here.it.prompts("researcher")[-1]
        assert "Order 1: tea." in prompt
        assert "Order 2: cups." in prompt
    assert shop.orders == ["tea", "cups"]


async def test_a_step_that_the_budget_cut_off_continues_from_its_calls(opening):
    shop = Shop()
    async with opening(script(*ORDERS, reply("Ordered.")), shop.offer()) as here:
        run = await here.ask(budget=Budget(tool_calls=1))
        [first] = data(await here.frames(run.run_id), "run_status")
        assert first["status"] == "budget_exhausted"
        assert shop.orders == ["tea"]
        here.it.server.reset(script(ORDERS[1], reply("Ordered.")))
        await here.retried(run.run_id)
        assert "Order 1: tea." in here.it.prompts("researcher")[0]
    assert shop.orders == ["tea", "cups"]


def test_a_step_that_the_user_changes_begins_again():
    progress = PlanProgress.of(Plan.model_validate(STEPS))
    failed = progress.with_step(2, status="failed", continuation={"task": "t", "messages": [], "cut_off": {}})
    kept = apply_changes(failed, [PlanChange("retry")], WORKERS)
    edited = apply_changes(failed, [PlanChange("edit", 2, description="Buy less.")], WORKERS)
    assert kept.step(2).continuation
    assert edited.step(2).continuation is None
