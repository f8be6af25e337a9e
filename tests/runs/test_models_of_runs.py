"""Each run is driven over the model that it chose, and keeps it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from maniple.errors import UnconfiguredModel
from maniple.graph import RunOptions
from maniple.runs import EngineConfig, RunRequest, open_engine
from maniple.runs.engine import Engine
from maniple.runs.teams import Teams, TeamSource
from maniple.scope.budget import Budget
from maniple.store import open_store
from tests.openai_server import SIMPLE, reply, serving
from tests.team import scripted_team

pytestmark = pytest.mark.anyio
_ASK_FIRST = {**SIMPLE, "coordinator": [reply("Hello.")]}


@asynccontextmanager
async def _two_teams(home: Path) -> AsyncIterator[tuple[TeamSource, Any, Any]]:
    """Open a team, and another one that a run gets by the name `other`; each has a model server."""
    async with open_store(home / "maniple.db", home / "artifacts", server=True) as store:
        with serving(_ASK_FIRST) as first, serving(_ASK_FIRST) as second:
            async with (
                scripted_team({}, server=first, checkpointer=store.checkpointer) as basic,
                scripted_team({}, server=second, checkpointer=store.checkpointer) as other,
            ):

                def build(name: str) -> Any:
                    if name != "other":
                        raise UnconfiguredModel(name, ["m", "other"])
                    return other.team

                yield TeamSource(basic.team, build), store, (first, second)


async def _end_of(engine: Engine, model: str = "") -> Any:
    accepted = await engine.submit(RunRequest([HumanMessage("Hello")], model=model))
    async for _ in engine.events(accepted.run.run_id):
        pass
    return await engine.status(accepted.run.run_id)


async def test_a_run_is_driven_over_the_model_that_it_chose(tmp_path):
    async with _two_teams(tmp_path) as (source, store, (first, second)):
        async with open_engine(source, store, kind="server") as engine:
            assert (await _end_of(engine, "other")).status == "completed"
            assert (first.stats["calls"], second.stats["calls"]) == (0, 1)
            assert (await _end_of(engine)).status == "completed"
            assert (first.stats["calls"], second.stats["calls"]) == (1, 1)


async def test_a_message_that_becomes_the_next_run_keeps_all_options_of_its_run(tmp_path):
    async with _two_teams(tmp_path) as (source, store, (first, second)):
        second.reset({**SIMPLE, "coordinator": [reply("Hello.", hang=True)]})
        async with open_engine(source, store, kind="server") as engine:
            asked = RunRequest(
                [HumanMessage("Hello")],
                options=RunOptions(depth="quick", locale="de-DE"),
                budget=Budget(tokens=90_000),
                model="other",
                metadata={"of": "the first run"},
            )
            run = (await engine.submit(asked)).run
            await asyncio.to_thread(second.wait_for, lambda stats: stats["calls"] == 1)
            accepted = await engine.send_message(run.run_id, "And then?")
            for one in (run.run_id, accepted.message_id):
                await asyncio.to_thread(second.release)
                async for _ in engine.events(one):
                    pass
            made = RunRequest.of(await engine.status(accepted.message_id))
    assert (first.stats["calls"], second.stats["calls"]) == (0, 2)
    assert (made.options, made.budget, made.model) == (asked.options, asked.budget, "other")
    assert (made.metadata, made.messages[0].text) == ({}, "And then?")


async def test_a_run_whose_model_is_not_configured_any_more_fails_with_the_models_that_are(tmp_path):
    async with _two_teams(tmp_path) as (source, store, (first, second)):
        async with open_engine(source, store, kind="server", config=EngineConfig(drain_seconds=0)) as engine:
            run = await _end_of(engine, "gone")
            assert (run.status, run.error_code) == ("failed", "unknown_model")
            assert "m, other" in run.error
            assert first.stats["calls"] + second.stats["calls"] == 0
            assert RunRequest.of(run).model == "gone"


async def test_replaced_models_are_closed_after_the_last_run_that_uses_them(tmp_path):
    closed = list[str]()

    async def close() -> None:
        closed.append("first")

    async with _two_teams(tmp_path) as (source, _, __):
        teams = Teams(replace(source, close=close))
        async with teams.use("other") as (team, _):
            await teams.replace(TeamSource(source.build("other")))
            assert closed == []
            async with teams.use("") as (now, _):
                assert now is source.build("other") is team
            assert closed == []
        assert closed == ["first"]
        await teams.close()
        assert closed == ["first"]


async def test_a_team_is_built_once_for_runs_that_begin_together(tmp_path):
    built = list[str]()
    async with _two_teams(tmp_path) as (source, _, __):

        def build(name: str) -> Any:
            built.append(name)
            return source.build(name)

        teams = Teams(replace(source, build=build))

        async def use() -> Any:
            async with teams.use("other") as (team, _):
                return team

        found = await asyncio.gather(*(use() for _ in range(5)))
    assert built == ["other"]
    assert len({id(one) for one in found}) == 1
