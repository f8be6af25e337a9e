"""A conversation over several requests: what the old client hands back, and what a thread remembers."""

from typing import Any

import pytest

from tests.grammar import Client
from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.serving import Frame, frames_of
from tests.team import data

pytestmark = pytest.mark.anyio
FIRST = {"role": "user", "content": "1+3=?"}
SECOND = {"role": "user", "content": "Now double it. Who computed the first?"}
REPORT = "# What is 1 + 3?\n\nThe answer is **4**.\n"


def prompts_of(model: OpenAIServer, role: str, turn: int) -> list[tuple[str, str]]:
    """Return role and text of what the model was shown as `role`, without its instructions."""
    asked = [r["messages"] for r in model.requests if str(r["messages"][0]["content"]).startswith("You are")]
    of_role = [m for m in asked if f"You are the {role}" in m[0]["content"]]
    listed = "What this conversation has"
    shown = [(message["role"], message["content"]) for message in of_role[turn][1:]]
    return [(author, text) for author, text in shown if not text.startswith(listed)]


async def ask(client: Any, *messages: dict[str, str], **body: Any) -> list[Frame]:
    frames = await frames_of(client, {"messages": list(messages), **body})
    Client().read(frames)
    return frames


async def test_a_second_question_of_the_old_client_is_answered_with_knowledge_of_the_first(client, model):
    model.reset(SIMPLE)
    first = await ask(client, FIRST)
    history = data(first, "end_of_workflow")[0]["messages"]
    # As the LangManus server tells it, and so as its client sends it back (captured-langmanus.txt).
    assert [message["role"] for message in history] == ["user"] * 4
    second = await ask(client, *history, SECOND)
    conversation = [
        ("user", FIRST["content"]),
        ("assistant", REPORT.strip()),
        ("user", SECOND["content"]),
    ]
    assert prompts_of(model, "coordinator", 1) == conversation
    assert prompts_of(model, "planner", 1) == conversation
    ended = data(second, "end_of_workflow")[0]["messages"]
    assert ended[:5] == [*history, SECOND]
    assert len(ended) == 8
    third = await ask(client, *ended, {"role": "user", "content": "Thank you"})
    assert [role for role, _ in prompts_of(model, "coordinator", 2)] == ["user", "assistant"] * 2 + ["user"]
    assert data(third, "final_session_state")[0]["messages"][:8] == ended


async def test_small_talk_after_a_workflow_preserves_the_authors(client, model):
    model.reset({**SIMPLE, "coordinator": [call("handoff_to_planner"), reply("You are welcome.")]})
    history = data(await ask(client, FIRST), "end_of_workflow")[0]["messages"]
    talk = await ask(client, *history, {"role": "user", "content": "Thank you"})
    assert talk[-1][1]["messages"][-1] == {"role": "assistant", "content": "You are welcome."}
    await ask(client, *talk[-1][1]["messages"], SECOND)
    assert prompts_of(model, "coordinator", 2) == [
        ("user", FIRST["content"]),
        ("assistant", REPORT.strip()),
        ("user", "Thank you"),
        ("assistant", "You are welcome."),
        ("user", SECOND["content"]),
    ]


async def test_the_end_of_a_continued_thread_reports_the_whole_conversation(client, model):
    model.reset(SIMPLE)
    thread = f"whole-{id(model)}"
    first = data(await ask(client, FIRST, thread_id=thread), "end_of_workflow")[0]["messages"]
    second = await ask(client, SECOND, thread_id=thread)
    ended = data(second, "end_of_workflow")[0]["messages"]
    assert data(second, "start_of_workflow")[0]["input"] == [SECOND]
    assert ended[:5] == [*first, SECOND]
    assert [message["content"] for message in ended[6:]] == ["1 + 3 = 4", REPORT.strip()]
    assert second[-1][1]["messages"] == ended


@pytest.mark.parametrize(
    ("role", "said"), [("coordinator", 0), ("planner", 0), ("coder", 3), ("reporter", 3)]
)
async def test_a_failure_on_a_continued_thread_loses_nothing_of_the_conversation(client, model, role, said):
    model.reset(SIMPLE)
    thread = f"failing-{role}-{id(model)}"
    first = data(await ask(client, FIRST, thread_id=thread), "end_of_workflow")[0]["messages"]
    model.reset({**SIMPLE, role: [{"status": 500}]})
    failed = data(await ask(client, SECOND, thread_id=thread), "end_of_workflow")[0]["messages"]
    assert failed[:5] == [*first, SECOND]
    assert len(failed) == 5 + said
    model.reset(SIMPLE)
    again = data(await ask(client, SECOND, thread_id=thread), "end_of_workflow")[0]["messages"]
    assert again[: len(failed)] == failed
