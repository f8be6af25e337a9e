"""A stream that was cut off anywhere can be ended so that the old client follows."""

import pytest
from langchain_core.messages import HumanMessage

from maniple.errors import ToolFailure
from maniple.events import Told, Translator, as_json, read_event
from maniple.runtime import stream_run
from tests.openai_server import SIMPLE, reply
from tests.team import checked, names, scripted_team

pytestmark = pytest.mark.anyio
QUESTION = [HumanMessage("1+3=?")]


@pytest.fixture(params=[SIMPLE, {"coordinator": [reply("hello there")]}], ids=["workflow", "small talk"])
async def events(request):
    async with scripted_team(request.param) as it:
        return [event async for event in stream_run(it.team, QUESTION, run_id="r", thread_id="t")]


async def test_wherever_it_was_cut_what_is_owed_makes_it_whole(events):
    for length in range(1, len(events) + 1):
        told = Told.of(events[:length])
        translator = Translator("r", "t", QUESTION, told)
        rest = [] if told.ended else [*translator.open(), *translator.close("completed")]
        frames = checked([*events[:length], *rest])
        assert names(frames).count("run_status") == names(frames).count("final_session_state") == 1


async def test_a_failure_after_the_cut_is_told_once(events):
    told = Told.of(events[:4])
    translator = Translator("r", "t", QUESTION, told)
    frames = checked([*events[:4], *translator.open(), *translator.close("failed", ToolFailure("no luck"))])
    assert names(frames).count("error") == 1


async def test_a_stretch_that_was_answered_is_judged_by_itself(events):
    told = Told.of([*events, *events[:1]])
    assert (told.begun, told.ended, told.status) == (True, False, None)


async def test_events_are_read_back_as_they_were(events):
    assert [read_event(event.type, as_json(event)) for event in events] == events
