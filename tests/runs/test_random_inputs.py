"""What is sent to runs, in any order and at any moment, is taken once, refused with a reason, or waits."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from maniple.runs.stored_inputs import read_inputs
from maniple.scope.inputs import Cancel, Message, PlanChange, ReceivedInput, Resume, StepAnswer
from maniple.store import RunRecord, Store
from tests.openai_server import SIMPLE, serving
from tests.runs.histories import THREAD, History
from tests.sizes import rest_is_slow

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]
SEEDS = range(60)


@pytest.mark.parametrize("seed", rest_is_slow(SEEDS, 2))
async def test_each_input_is_taken_once_or_refused_once_or_waits(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with serving(SIMPLE) as server:
        async with History(tmp_path, server, chance) as history:
            for _ in range(chance.randint(1, 2)):
                await history.turn(most=10)
            store = history.it.store
            runs = [*reversed(await store.runs.list_by_thread(THREAD, 200))]
            stored: list[ReceivedInput] = []
            for run in runs:
                received = await read_inputs(store.inputs, run.run_id)
                stored += received
                await _check_inputs(store, run, received)
                await _check_stream(store, run, received)
    _check_words(history, runs, stored)
    assert all(history.refused.values()), "each refusal says why"


def _check_words(history: History, runs: list[RunRecord], stored: list[ReceivedInput]) -> None:
    """Compare what was accepted and refused with what is stored: in one place, or in none."""
    requests = {run.run_id: run.request for run in runs}
    contents = {one.input_id: str(one.content) for one in stored if one.sender == "user"}
    # The form of a question may show what another input has changed.
    contents |= {
        one.input_id: f"{one.content.answer}"
        for one in stored
        if isinstance(one.content, Resume | StepAnswer)
    }
    for word in history.said:
        sent = [at for at, text in contents.items() if word in text]
        began = [at for at, text in requests.items() if word in text]
        assert len(sent) + len(set(began) - set(sent)) == 1, (word, history.said[word], sent, began)
    assert not [word for word in history.refused if word in str([*contents.values(), *requests.values()])]


async def _check_inputs(store: Store, run: RunRecord, received: list[ReceivedInput]) -> None:
    for one in received:
        reply = one.reply.disposition if one.reply is not None else None
        where = (run.status, one)
        match one.content:
            case Message():
                # After a cancellation it waits for a retry.
                assert reply is not None or run.status == "cancelled", where
                # After a cancellation it waits: a retry begins it.
                next_run = await store.runs.get(one.input_id)
                assert next_run is None if reply != "next_run" else next_run or run.status == "cancelled"
            case PlanChange():
                assert reply in ("taken", None), where
            case Cancel():
                assert reply is not None, where
                assert one.reply is not None, where
                assert reply == "taken" or one.reply.text, where
            case StepAnswer():
                assert one.reply is not None, where
                assert reply == "taken" or one.reply.text, where
            case _:
                assert reply == "taken", where


async def _check_stream(store: Store, run: RunRecord, received: list[ReceivedInput]) -> None:
    """Check that the run's stream shows each input once, and each change in its plan once."""
    events = await store.events.read(run.run_id, limit=100_000)
    assert [one.number for one in events] == [*range(1, len(events) + 1)]
    data = [(one.type, json.loads(one.data)) for one in events]
    shown = Counter(one["message_id"] for kind, one in data if kind == "user_message")
    answers = [one for kind, one in data if kind == "user_message_answer"]
    dropped = {one["message_id"] for one in answers if one["disposition"] == "dropped"}
    answered = Counter(one["message_id"] for one in answers if one["disposition"] != "dropped")
    messages = [one for one in received if isinstance(one.content, Message)]
    # A question about a plan that waits for its review is answered as well; it came as an answer to the form.
    asked = {one.input_id for one in received if isinstance(one.content, Resume)} & answered.keys()
    assert all(answered.pop(one) == 1 for one in asked), run.status
    assert shown == Counter(one.input_id for one in messages), run.status
    assert answered == Counter(one.input_id for one in messages if one.reply is not None), run.status
    assert dropped >= {one.input_id for one in messages if one.reply is None}, run.status
    given = [one for one in received if isinstance(one.content, Resume | StepAnswer)]
    assert sum(kind == "user_answer" for kind, _ in data) == len(given), run.status
    added = [
        one.content.description
        for one in received
        if isinstance(one.content, PlanChange) and one.content.action == "add" and one.sender == "user"
        if one.reply is not None
    ]
    plans = [one["steps"] for kind, one in data if kind == "plan" and not one.get("draft")]
    steps = Counter(one.get("description") for one in plans[-1]) if plans else Counter[str]()
    assert all(steps[one] <= 1 for one in added), steps
